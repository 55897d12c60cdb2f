"""Fine-tune a text classifier; a collator makes tokens and pads them, as many examples of text classification do."""

from __future__ import annotations

import random
import string
import time

import torch
from torch import nn
from torch.utils.data import DataLoader

LABELS, STEPS, BATCH, WORDS = 4, 150, 16, 80
PAD, UNKNOWN = 0, 1


class WordPiece:
    """Splits words into the longest pieces that the vocabulary has."""

    def __init__(self, vocabulary: list[str]) -> None:
        self.ids = {piece: i + 2 for i, piece in enumerate(vocabulary)}

    def split_word(self, word: str) -> list[int]:
        pieces, start = [], 0
        while start < len(word):
            end = len(word)
            while end > start and word[start:end] not in self.ids:  # planted: input-bound
                end -= 1
            if end == start:
                return [UNKNOWN]
            pieces.append(self.ids[word[start:end]])
            start = end
        return pieces

    def __call__(self, text: str) -> list[int]:
        return [piece for word in text.split() for piece in self.split_word(word)]


class Collator:
    def __init__(self, tokenizer: WordPiece) -> None:
        self.tokenizer = tokenizer

    def __call__(self, examples: list[dict]) -> dict[str, torch.Tensor]:
        rows = [torch.tensor(self.tokenizer(example["text"])) for example in examples]
        return {
            "input_ids": nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD),
            "labels": torch.tensor([example["label"] for example in examples]),
        }


class Classifier(nn.Module):
    def __init__(self, n_tokens: int, width: int = 96) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, width, padding_idx=PAD)
        self.net = nn.Sequential(nn.Linear(width, 2048), nn.ReLU(), nn.Linear(2048, 1024), nn.ReLU())
        self.head = nn.Linear(1024, LABELS)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.net(self.embedding(input_ids).mean(dim=1)))


def generate(n: int) -> list[dict]:
    chance = random.Random(0)
    words = ["".join(chance.choices(string.ascii_lowercase, k=chance.randint(10, 24))) for _ in range(5000)]
    return [{"text": " ".join(chance.choices(words, k=WORDS)), "label": chance.randrange(LABELS)} for _ in range(n)]


def main() -> None:
    torch.manual_seed(0)
    letters = list(string.ascii_lowercase)
    tokenizer = WordPiece(letters + [a + b for a in letters for b in letters])
    examples = generate(STEPS * BATCH)
    loader = DataLoader(examples, batch_size=BATCH, shuffle=True, collate_fn=Collator(tokenizer))
    model = Classifier(len(tokenizer.ids) + 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    start, n = time.perf_counter(), 0
    for batch in loader:
        loss = nn.functional.cross_entropy(model(batch["input_ids"]), batch["labels"])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        n += 1
        if n % 50 == 0:
            print(f"step {n}: loss {loss.item():.4f}")
    print(f"{n} steps, {1e3 * (time.perf_counter() - start) / n:.3f} ms/step")


if __name__ == "__main__":
    main()
