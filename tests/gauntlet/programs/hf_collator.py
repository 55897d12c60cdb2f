"""Masked language modeling with the Trainer of transformers; the collator masks tokens as BERT does."""

from __future__ import annotations

import random
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForMaskedLM, Trainer, TrainingArguments

VOCABULARY, LENGTH, MASK, STEPS, BATCH = 500, 512, 4, 60, 4


class Sentences(Dataset):
    def __init__(self, n: int) -> None:
        self.ids = torch.randint(5, VOCABULARY, (n, LENGTH), generator=torch.Generator().manual_seed(0)).tolist()

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, i: int) -> dict[str, list[int]]:
        return {"input_ids": self.ids[i]}


def mask_tokens(ids: list[int]) -> tuple[list[int], list[int]]:
    """80 % of the chosen tokens become [MASK], 10 % random ones, 10 % stay. Frequent tokens are chosen less often."""
    inputs, labels = [], []
    for token in ids:
        rarity = sum(token != other for other in ids) / len(ids)  # planted: input-bound
        if random.random() > 0.15 * rarity:
            inputs.append(token)
            labels.append(-100)
            continue
        draw = random.random()
        inputs.append(MASK if draw < 0.8 else random.randrange(5, VOCABULARY) if draw < 0.9 else token)
        labels.append(token)
    return inputs, labels


def collate(examples: list[dict]) -> dict[str, torch.Tensor]:
    masked = [mask_tokens(example["input_ids"]) for example in examples]
    return {
        "input_ids": torch.tensor([inputs for inputs, _ in masked]),
        "labels": torch.tensor([labels for _, labels in masked]),
    }


def main() -> None:
    config = BertConfig(
        vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64
    )
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, per_device_train_batch_size=BATCH, max_steps=STEPS, learning_rate=5e-4, logging_steps=40,
            save_strategy="no", report_to="none", use_cpu=True, disable_tqdm=True, dataloader_pin_memory=False,
        )  # fmt: skip
        trainer = Trainer(
            BertForMaskedLM(config), arguments, train_dataset=Sentences(STEPS * BATCH), data_collator=collate
        )
        metrics = trainer.train().metrics
    print(f"{STEPS} steps, {1e3 * metrics['train_runtime'] / STEPS:.3f} ms/step")


if __name__ == "__main__":
    main()
