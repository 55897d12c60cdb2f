"""Profiling with the Hugging Face Trainer.

    from kymo.hf import ProfCallback

    trainer = Trainer(model, arguments, train_dataset=data, callbacks=[ProfCallback(output_dir="profiler_output")])

ProfCallback records a few steps in all detail; Callback tells a recording of every step and its phases.
"""

from __future__ import annotations

import importlib
import importlib.util

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

if importlib.util.find_spec("transformers") is None:
    raise ImportError("kymo.hf needs transformers: pip install transformers")

_PARTS = {"Callback": "kymo._hf_phases", "ProfCallback": "kymo._hf_profile"}


def __getattr__(name: str) -> Any:
    if name not in _PARTS:
        raise AttributeError(f"module 'kymo.hf' has no attribute {name!r}")
    return getattr(importlib.import_module(_PARTS[name]), name)
