"""Small models of each kind that the examples train, with a batch and a loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import leafax as t
import leafax.nn.functional as F
from leafax import nn
from leafax.adapters import freeze


class Task(NamedTuple):
    """A model with all that its training takes.

    Attributes:
      model: made anew by each call.
      batch: arrays that the loss takes, floating point ones in float64.
      loss: of the model and the batch's tensors.
      optimizer: of the parameters that are trained.
    """

    model: Callable[[], Any]
    batch: Callable[[int], tuple[np.ndarray, ...]]
    loss: Callable[..., Any]
    optimizer: Callable[[Any], Any]


def convnet(frozen: bool = False) -> Any:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(16, 5),
    )  # fmt: skip
    if frozen:
        freeze(model, "0", "1", "4", "5")
    return model


class Transformer(nn.Module):
    """A language model of one block."""

    def __init__(self) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(20, 16), nn.Embedding(9, 16)
        self.norms = nn.ModuleList(nn.LayerNorm(16) for _ in range(3))
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.wide, self.narrow = nn.Linear(16, 32), nn.Linear(32, 16)
        self.head = nn.Linear(16, 20)

    def forward(self, x: Any) -> Any:
        h = self.token(x) + self.place.weight[: x.shape[1]]
        n, length, width = h.shape
        q, k, v = (
            part.view(n, length, 4, 4).transpose(1, 2)
            for part in self.qkv(self.norms[0](h)).split(width, 2)
        )
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + self.out(seen.transpose(1, 2).reshape(n, length, width))
        h = h + self.narrow(F.gelu(self.wide(self.norms[1](h))))
        return self.head(self.norms[2](h))


class Words(nn.Module):
    """A recurrent classifier of words."""

    def __init__(self) -> None:
        super().__init__()
        self.letters, self.lstm, self.head = nn.Embedding(20, 8), nn.LSTM(8, 12), nn.Linear(12, 4)

    def forward(self, x: Any) -> Any:
        return self.head(self.lstm(self.letters(x.t()))[0][-1])


class Autoencoder(nn.Module):
    """A variational autoencoder; its noise comes with the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Linear(12, 8), nn.Linear(4, 12)

    def forward(self, x: Any, noise: Any) -> Any:
        mean, log_scale = self.encoder(x).tanh().chunk(2, 1)
        shape = self.decoder(mean + noise * log_scale.exp())
        distance = -0.5 * (1 + 2 * log_scale - mean**2 - (2 * log_scale).exp()).sum(1).mean()
        return F.binary_cross_entropy_with_logits(shape, x) + 0.01 * distance


def _rng(i: int) -> np.random.Generator:
    return np.random.default_rng(1000 + i)


def _images(i: int) -> tuple[np.ndarray, ...]:
    return _rng(i).standard_normal((8, 3, 8, 8)), _rng(i).integers(0, 5, 8)


def _words(i: int) -> tuple[np.ndarray, ...]:
    return _rng(i).integers(0, 20, (6, 9)), _rng(-i).integers(0, 4, 6)


def _of_labels(model: Any, x: Any, y: Any) -> Any:
    return F.cross_entropy(model(x), y)


def _next_words(model: Any, x: Any, y: Any) -> Any:
    return F.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())


TASKS = {
    "convnet": Task(convnet, _images, _of_labels, lambda p: t.optim.Adam(p, 1e-2)),
    "frozen convnet": Task(lambda: convnet(True), _images, _of_labels,
                           lambda p: t.optim.SGD(p, 0.1, momentum=0.9, nesterov=True)),
    "transformer": Task(Transformer, _words, _next_words, lambda p: t.optim.AdamW(p, 1e-2)),
    "words": Task(Words, _words, _of_labels, lambda p: t.optim.RMSprop(p, 1e-2)),
    "autoencoder": Task(
        Autoencoder, lambda i: (_rng(i).uniform(0, 1, (8, 12)), _rng(-i).standard_normal((8, 4))),
        lambda model, *batch: model(*batch), lambda p: t.optim.Adagrad(p, 1e-1)),
}  # fmt: skip
