"""REINFORCE on a little walk, after the examples of PyTorch: play episodes, compute returns, update the policy."""

from __future__ import annotations

import time

import torch
from torch import nn

ENVIRONMENTS, LENGTH, UPDATES, GAMMA = 64, 128, 60, 0.99


class Policy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))

    def forward(self, state: torch.Tensor) -> torch.distributions.Categorical:
        return torch.distributions.Categorical(logits=self.net(state))


def play(policy: Policy) -> tuple[torch.Tensor, torch.Tensor]:
    """Rewards and log-probabilities, each LENGTH x ENVIRONMENTS."""
    state = torch.zeros(LENGTH, ENVIRONMENTS, 4)
    state[0] = torch.randn(ENVIRONMENTS, 4)
    noise = 0.1 * torch.randn(LENGTH, ENVIRONMENTS, 4).cumsum(0)
    distribution = policy(state + noise)
    actions = distribution.sample()
    return (actions * 2 - 1) * noise[..., 0].sign(), distribution.log_prob(actions)


def discount(rewards: torch.Tensor) -> torch.Tensor:
    returns = torch.zeros_like(rewards)
    for e in range(rewards.shape[1]):
        total = 0.0
        for t in range(rewards.shape[0] - 1, -1, -1):
            total = rewards[t, e] + GAMMA * total  # planted: hot-function
            returns[t, e] = total
    return returns


def main() -> None:
    torch.manual_seed(0)
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
    start = time.perf_counter()
    for update in range(UPDATES):
        rewards, log_probs = play(policy)
        returns = discount(rewards)
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        loss = -(log_probs * returns).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update % 20 == 0:
            print(f"update {update}: reward {rewards.mean().item():.3f}")
    print(f"{UPDATES} updates, {1e3 * (time.perf_counter() - start) / UPDATES:.3f} ms/update")


if __name__ == "__main__":
    main()
