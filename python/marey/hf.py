"""Profiling with the Hugging Face Trainer.

    from marey.hf import Callback, ProfCallback

    trainer = Trainer(model, arguments, train_dataset=data, callbacks=[ProfCallback(output_dir="profiler_output")])

ProfCallback records a few steps in full detail; Callback records every step and its phases. SlowStep,
OnSignal, OnFile and When are triggers of a ProfCallback.
"""

from __future__ import annotations

from marey._hf_phases import Callback
from marey._hf_profile import ProfCallback
from marey._triggers import OnFile, OnSignal, SlowStep, When

__all__ = ["Callback", "OnFile", "OnSignal", "ProfCallback", "SlowStep", "When"]
