"""Train a policy with PPO: 128 steps of many environments at once, then updates on minibatches."""

import argparse
import time

import torch
from torch import nn

ENVS, STEPS, MINIBATCHES, OBS, ACTIONS = 64, 128, 16, 24, 6


class Environments:
    """Points that move to a target, all in one tensor."""

    def __init__(self):
        self.state = torch.randn(ENVS, OBS)
        self.effects = torch.randn(ACTIONS, OBS) * 0.1

    def step(self, actions):
        self.state = (self.state + self.effects[actions]) * 0.99 + 0.01 * torch.randn(ENVS, OBS)
        for _ in range(4):  # the physics
            self.state = torch.tanh(self.state)
        return self.state, -self.state.square().mean(1)


class Policy(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(OBS, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.actor, self.critic = nn.Linear(width, ACTIONS), nn.Linear(width, 1)

    def forward(self, x):
        x = self.body(x)
        return self.actor(x), self.critic(x).squeeze(1)


@torch.no_grad()
def rollout(policy, envs, obs):
    seen = []
    for _ in range(STEPS):
        logits, values = policy(obs)
        actions = torch.multinomial(logits.softmax(1), 1).squeeze(1)
        log_probs = logits.log_softmax(1).gather(1, actions[:, None]).squeeze(1)
        after, rewards = envs.step(actions)
        seen.append((obs, actions, log_probs, values, rewards))
        obs = after
    return obs, [torch.stack(each) for each in zip(*seen)]


def advantages_of(rewards, values):
    advantages, last = torch.zeros_like(rewards), torch.zeros(ENVS)
    for t in reversed(range(STEPS - 1)):
        delta = rewards[t] + 0.99 * values[t + 1] - values[t]
        advantages[t] = last = delta + 0.94 * last
    return advantages


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--width", type=int, default=256)
    args = parser.parse_args()
    torch.manual_seed(0)
    policy, envs = Policy(args.width), Environments()
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
    obs = envs.state
    start = time.perf_counter()
    for _ in range(args.updates):
        obs, (o, a, p, v, r) = rollout(policy, envs, obs)
        advantages = advantages_of(r, v)
        flat = [x.flatten(0, 1) for x in (o, a, p, v, advantages)]
        for rows in torch.randperm(ENVS * STEPS).chunk(MINIBATCHES):
            obs_, actions, old, values, gains = (x[rows] for x in flat)
            logits, new_values = policy(obs_)
            log_probs = logits.log_softmax(1).gather(1, actions[:, None]).squeeze(1)
            ratio = (log_probs - old).exp()
            clipped = torch.min(ratio * gains, ratio.clamp(0.8, 1.2) * gains).mean()
            loss = (new_values - values - gains).square().mean() - clipped
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    n = args.updates * MINIBATCHES
    print(f"loss {loss.item():.4f}, {1e3 * (time.perf_counter() - start) / n:.3f} ms/step")


if __name__ == "__main__":
    main()
