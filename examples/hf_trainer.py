"""Profile a training with Hugging Face's Trainer: phases of every step, a few steps in full detail.

    python examples/hf_trainer.py [FOLDER]

A tiny model with random weights learns a rule of numbers; nothing is downloaded. marey.hf.Callback records the phases
of every step into FOLDER/train.marey. marey.hf.ProfCallback records one of them with its operators, memory and stacks,
and writes its files into FOLDER/profiler_output, in the background.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

import marey
from marey.hf import Callback, ProfCallback

ARTIFACTS = {
    "rank0-*.pt.trace.json.gz": "the trace, for Perfetto, chrome://tracing, `marey breakdown`",
    "key_averages.txt": "operators by the time they take",
    "rank0_stacks.txt": "stacks, for a flame graph",
    "rank0_memory-timeline.html": "memory over time by category, for a browser",
    "rank0_memory_snapshot.pickle": "allocations, for pytorch.org/memory_viz",
}


class Counting(torch.utils.data.Dataset):
    """Sequences that count: 7 8 9 10 ..."""

    def __len__(self) -> int:
        return 96

    def __getitem__(self, i: int) -> dict[str, torch.Tensor]:
        numbers = torch.arange(i, i + 32) % 64
        return {"input_ids": numbers, "labels": numbers}


def train(folder: Path) -> None:
    sizes = GPT2Config(n_layer=2, n_embd=64, n_head=2, vocab_size=64, n_positions=32, bos_token_id=0, eos_token_id=0)
    arguments = TrainingArguments(
        output_dir=str(folder / "trainer"),
        num_train_epochs=2,
        per_device_train_batch_size=16,
        eval_strategy="epoch",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    trainer = Trainer(
        GPT2LMHeadModel(sizes),
        arguments,
        train_dataset=Counting(),
        eval_dataset=Counting(),
        callbacks=[
            Callback(folder / "train.marey"),
            ProfCallback(
                output_dir=folder / "profiler_output", wait_steps=4, warmup_steps=4, active_steps=1, num_cycles=1
            ),
        ],
    )
    trainer.train()


def show(folder: Path) -> None:
    run = marey.load(folder / "train.marey")
    print("\nEvery step, by its phases:\n")
    print(run.table("iterations"))
    (window,) = (folder / "profiler_output").glob("iteration_*")
    print(f"\nOne step in detail, in {window} as soon as it is made:\n")
    for name, what in ARTIFACTS.items():
        print(f"  {name:32}{what}")
    print(
        "\nTo look at:\n"
        f"  marey report {folder}/train.marey --epochs  epochs by phase\n"
        f"  marey export {folder}/train.marey           a timeline of all steps\n"
        f"  less {window}/key_averages.txt"
    )


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "hf_trainer_output")
    folder.mkdir(parents=True, exist_ok=True)
    train(folder)
    show(folder)


if __name__ == "__main__":
    main()
