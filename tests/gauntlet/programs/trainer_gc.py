"""Classify sentences with the Trainer of transformers and a callback that frees memory."""

from __future__ import annotations

import gc
import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments

STEPS, BATCH, LENGTH, TOKENS = 50, 8, 48, 1000


class FreeMemory(TrainerCallback):
    """Against running out of memory."""

    def on_step_end(self, args, state, control, **kwargs) -> None:
        gc.collect()  # planted: gc-pauses


def main() -> None:
    torch.manual_seed(0)
    ids = torch.randint(TOKENS, (STEPS * BATCH, LENGTH))
    dataset = [{"input_ids": row, "labels": row[0] % 2} for row in ids]
    config = BertConfig(
        vocab_size=TOKENS, hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256
    )
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, per_device_train_batch_size=BATCH, max_steps=STEPS, logging_steps=40, save_strategy="no",
            report_to="none", use_cpu=True, disable_tqdm=True, dataloader_pin_memory=False,
        )  # fmt: skip
        trainer = Trainer(
            BertForSequenceClassification(config), arguments, train_dataset=dataset, callbacks=[FreeMemory()]
        )
        metrics = trainer.train().metrics
    print(f"{STEPS} steps, {1e3 * metrics['train_runtime'] / STEPS:.3f} ms/step")


if __name__ == "__main__":
    main()
