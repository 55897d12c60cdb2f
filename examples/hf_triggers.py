"""Profiling windows opened by a slow step, a signal, a file or the trainer's state.

    python examples/hf_triggers.py [FOLDER]

Here the state opens one, at step 5; in your own training, use `kill -USR1 PID` or `touch FOLDER/profile.now`. The files
are the same as for a window of the schedule (hf_trainer.py).
"""

import sys
from pathlib import Path

from hf_trainer import Counting
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

from marey.hf import OnFile, OnSignal, ProfCallback, SlowStep, When


def main(folder: Path) -> None:
    sizes = GPT2Config(n_layer=1, n_embd=32, n_head=2, vocab_size=64, n_positions=32, bos_token_id=0, eos_token_id=0)
    arguments = TrainingArguments(
        output_dir=str(folder / "trainer"),
        max_steps=10,
        per_device_train_batch_size=8,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    windows = ProfCallback(
        output_dir=folder / "windows",
        engine="marey",
        warmup_steps=1,
        active_steps=2,
        triggers=[
            SlowStep(1000.0),  # times the median of the last 50 steps
            OnSignal(),
            OnFile(folder / "profile.now"),
            When(lambda state: state.global_step == 5, limit=1),
        ],
    )
    Trainer(GPT2LMHeadModel(sizes), arguments, train_dataset=Counting(), callbacks=[windows]).train()
    for window in sorted((folder / "windows").iterdir()):
        print(f"{window.name}: recorded in detail")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "hf_triggers_output"))
