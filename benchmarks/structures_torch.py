"""Programs of another structure at each step, written with torch: an actor-critic, masks, trees.

The same lines run with leafax as torch, see `programs.py`. Each takes a length, and returns the
loss.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

Turn = Callable[[int], float]


def _learn(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> float:
    """Take a step against the loss, and return it."""
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call, unused-ignore]
    optimizer.step()
    return loss.item()


class ActorCritic(nn.Module):
    """A policy and a value with one layer in common."""

    def __init__(self) -> None:
        super().__init__()
        self.common, self.policy, self.value = nn.Linear(4, 64), nn.Linear(64, 2), nn.Linear(64, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return probabilities of the actions, and the value of the state."""
        h = F.relu(self.common(x))
        return F.softmax(self.policy(h), dim=-1), self.value(h)


def make_actor_critic() -> Turn:
    """Return a function that plays an episode of a length, and learns from it."""
    torch.manual_seed(0)
    net = ActorCritic()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)

    def episode(length: int) -> float:
        state, saved, rewards = np.array([0, 0, 0.1, 0], np.float32), [], []
        for _ in range(length):
            probabilities, value = net(torch.from_numpy(state))
            chosen = torch.distributions.Categorical(probabilities)
            action = chosen.sample()
            saved.append((chosen.log_prob(action), value))
            push = 0.1 if action.item() else -0.1
            state = state + np.array([state[1] * 0.02, push, 0, -push], np.float32)
            rewards.append(1 - abs(float(state[0])))
        found: list[float] = []
        r = 0.0
        for reward in reversed(rewards):
            r = reward + 0.99 * r
            found.insert(0, r)
        returns = torch.tensor(found)
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        policy, values = [], []
        for (log, value), worth in zip(saved, returns, strict=True):
            policy.append(-log * (worth - value.item()))
            values.append(F.smooth_l1_loss(value, worth[None]))
        return _learn(optimizer, torch.stack(policy).sum() + torch.stack(values).sum())

    return episode


def make_masks() -> Turn:
    """Return a function that trains on the rows that a mask picks, as many as their length says."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    rng = np.random.default_rng(0)

    def step(length: int) -> float:
        x = torch.from_numpy(rng.normal(size=(64, 16)).astype("f"))
        y = torch.from_numpy(rng.normal(size=64).astype("f"))
        keep = torch.arange(64) < length
        return _learn(optimizer, ((net(x[keep]).squeeze(1) - y[keep]) ** 2).mean())

    return step


def make_trees() -> Turn:
    """Return a function that trains a recursive network on a tree of so many leaves."""
    torch.manual_seed(0)
    leaf, join, head = nn.Embedding(20, 16), nn.Linear(32, 16), nn.Linear(16, 2)
    parameters = [*leaf.parameters(), *join.parameters(), *head.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.01)
    rng = np.random.default_rng(0)

    def tree(leaves: int) -> Any:
        if leaves == 1:
            return leaf(torch.tensor([int(rng.integers(20))]))
        k = int(rng.integers(1, leaves))
        return torch.tanh(join(torch.cat([tree(k), tree(leaves - k)], 1)))

    def step(leaves: int) -> float:
        return _learn(optimizer, F.cross_entropy(head(tree(leaves)), torch.tensor([leaves % 2])))

    return step
