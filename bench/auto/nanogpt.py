"""A small GPT in plain PyTorch, trained on random tokens, in the style of nanoGPT."""

import sys

import torch
from alternate import end, step
from torch import nn
from torch.nn import functional

VOCABULARY, CONTEXT, WIDTH, HEADS, LAYERS, BATCH = 256, 64, 128, 4, 4, 8


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, c = x.shape
        q, k, v = (y.view(b, t, HEADS, c // HEADS).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(c, dim=2))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        hidden = self.tokens(x) + self.places(torch.arange(x.shape[1], device=x.device))
        return functional.cross_entropy(self.head(self.blocks(hidden)).flatten(0, 1), y.flatten())


def main() -> None:
    torch.manual_seed(1)
    data = torch.randint(VOCABULARY, (100_000,))
    model = Gpt()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for _ in range(int(sys.argv[1])):
        step()
        starts = torch.randint(len(data) - CONTEXT - 1, (BATCH,))
        x = torch.stack([data[i : i + CONTEXT] for i in starts])
        y = torch.stack([data[i + 1 : i + 1 + CONTEXT] for i in starts])
        loss = model(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()


main()
end()
