"""An LSTM, REINFORCE, and text sampled token by token, written with torch.

The same lines run with leafax as torch, see `programs.py`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import recurrent_by_hand as hand
import torch
import torch.nn.functional as F
from torch import nn

Batch = tuple[torch.Tensor, torch.Tensor]


class Program(NamedTuple):
    """A training program; it unpacks as `step, state, batch`. The state changes in place."""

    step: Callable[[Any, Batch], tuple[Any, torch.Tensor]]
    state: Any
    batch: Callable[[int], Batch]


class Model(nn.Module):
    """A language model of LSTM layers."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(hand.VOCABULARY, hand.WIDTH)
        self.lstm = nn.LSTM(hand.WIDTH, hand.WIDTH, hand.LAYERS, batch_first=True)
        self.head = nn.Linear(hand.WIDTH, hand.VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return logits of the token that follows each."""
        return self.head(self.lstm(self.tokens(tokens))[0])  # type: ignore[no-any-return, unused-ignore]


def make_lstm() -> Program:
    """Return the program of `recurrent_by_hand.make_lstm`."""
    model = Model()
    model.load_state_dict({k: torch.tensor(v) for k, v in hand.lstm_params().items()})
    optimizer = torch.optim.Adam(model.parameters(), lr=hand.RATE)

    def step(state: Any, batch: Batch) -> tuple[Any, torch.Tensor]:
        loss = F.cross_entropy(model(batch[0]).flatten(0, -2), batch[1].flatten())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call, unused-ignore]
        optimizer.step()
        return state, loss.detach()

    def tensors(i: int) -> Batch:
        tokens, following = map(torch.from_numpy, hand.lstm_batch(i))
        return tokens.long(), following.long()

    return Program(step, (model, optimizer), tensors)


def make_reinforce() -> Callable[[int], tuple[float, int]]:
    """Return a function that plays an episode of a length that it is given, and learns from it.

    It returns the loss and the number of steps. The game is a walk that the action pushes.
    """
    torch.manual_seed(0)
    policy = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)

    def episode(length: int) -> tuple[float, int]:
        state, logs, rewards = [0.0, 0.0, 0.1, 0.0], [], []
        for _ in range(length):
            probabilities = F.softmax(policy(torch.tensor(state)), dim=-1)
            chosen = torch.distributions.Categorical(probabilities)
            action = chosen.sample()
            logs.append(chosen.log_prob(action))
            push = 0.1 if action.item() else -0.1
            state = [state[0] + state[1] * 0.02, state[1] + push, state[2], state[3] - push]
            rewards.append(1.0 - abs(state[0]))
        returns, r = [], 0.0
        for reward in reversed(rewards):
            r = reward + 0.99 * r
            returns.insert(0, r)
        worth = torch.tensor(returns)
        worth = (worth - worth.mean()) / (worth.std() + 1e-6)
        loss = torch.stack([-log * w for log, w in zip(logs, worth, strict=True)]).sum()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call, unused-ignore]
        optimizer.step()
        return loss.item(), length

    return episode


def make_sampling(width: int = 32, layers: int = 2, heads: int = 2) -> Callable[[int], Any]:
    """Return a function that samples tokens with a context that grows from one to as many."""
    torch.manual_seed(0)
    tokens, positions = nn.Embedding(64, width), nn.Embedding(256, width)
    layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, batch_first=True)
    encoder, head = nn.TransformerEncoder(layer, layers), nn.Linear(width, 64)
    encoder.eval()

    def sample(count: int) -> Any:
        x = torch.zeros(1, 1, dtype=torch.long)
        with torch.no_grad():
            for _ in range(count):
                n = x.shape[1]
                mask = nn.Transformer.generate_square_subsequent_mask(n)
                h = encoder(tokens(x) + positions(torch.arange(n)), mask=mask, is_causal=True)
                probabilities = F.softmax(head(h[:, -1]), dim=-1)
                x = torch.cat([x, torch.multinomial(probabilities, 1)], 1)
        return x[0, -1].item()

    return sample
