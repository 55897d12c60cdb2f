"""Train a character-level GPT, after nanoGPT: one file, a config at the top, get_batch() from an array in memory."""

from __future__ import annotations

import argparse
import math
import random
import time

import torch
from torch import nn
from torch.nn import functional

eval_interval = 500
learning_rate, min_lr, warmup_iters = 1e-3, 1e-4, 20


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(x).split(c, dim=2))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(width), Attention(width, heads), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, n_chars: int, block_size: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(n_chars, width), nn.Embedding(block_size, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.ln_f, self.lm_head = nn.LayerNorm(width), nn.Linear(width, n_chars, bias=False)

    def forward(self, idx: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        logits = self.lm_head(self.ln_f(self.blocks(x)))
        return logits, functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def get_lr(it: int, max_iters: int) -> float:
    if it < warmup_iters:
        return learning_rate * (it + 1) / warmup_iters
    coeff = 0.5 * (1.0 + math.cos(math.pi * (it - warmup_iters) / max(1, max_iters - warmup_iters)))
    return min_lr + coeff * (learning_rate - min_lr)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--max_iters", type=int, default=300)
    parser.add_argument("--batch_size", type=int, default=12)
    parser.add_argument("--block_size", type=int, default=64)
    parser.add_argument("--n_embd", type=int, default=64)
    parser.add_argument("--n_head", type=int, default=4)
    parser.add_argument("--n_layer", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(1337)
    chance = random.Random(1337)
    text = "".join(chance.choices("abcdefghijklmnopqrstuvwxyz     ,.;:!?\n'-ABCDEFGHIJKLMNOPQRSTUVWXYZ", k=200_000))
    chars = sorted(set(text))
    stoi = {ch: i for i, ch in enumerate(chars)}

    def get_batch() -> tuple[torch.Tensor, torch.Tensor]:
        data = [stoi[c] for c in text]  # planted: hot-function
        ix = torch.randint(len(data) - args.block_size, (args.batch_size,))
        x = torch.tensor([data[i : i + args.block_size] for i in ix])
        y = torch.tensor([data[i + 1 : i + 1 + args.block_size] for i in ix])
        return x, y

    model = GPT(len(chars), args.block_size, args.n_embd, args.n_head, args.n_layer)
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.99), weight_decay=0.1)
    start = t0 = time.time()
    for it in range(args.max_iters):
        for group in optimizer.param_groups:
            group["lr"] = get_lr(it, args.max_iters)
        xb, yb = get_batch()
        _, loss = model(xb, yb)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if it % 50 == 0:
            t1 = time.time()
            print(f"iter {it}: loss {loss.item():.4f}, time {(t1 - t0) * 1000:.2f}ms")
            t0 = t1
    print(f"{args.max_iters} iterations, {1e3 * (time.time() - start) / args.max_iters:.3f} ms/iter")


main()
