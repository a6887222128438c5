"""Memory layout of tensors that were indexed, rolled, stacked, repeated or gated."""

from __future__ import annotations

import random
from typing import Any

import pytest
from helpers.sameness import same


def _laid_out(lib: Any, rng: random.Random) -> Any:
    shape = [rng.choice([1, 2, 3, 4]) for _ in range(rng.choice([2, 3, 4, 4, 5]))]
    order = rng.sample(range(len(shape)), len(shape))
    step = rng.choice([1, 1, 2])
    made = lib.zeros([step * shape[d] for d in order])
    made = made.permute([order.index(d) for d in range(len(shape))])
    return made[(slice(None, None, step),) * len(shape)]


def _indices(lib: Any, rng: random.Random, rank: int) -> tuple[Any, ...]:
    shape = [rng.choice([1, 2, 3]) for _ in range(rng.randint(1, 3))]
    found: list[Any] = []
    for _ in range(rng.randint(1, rank)):
        index = lib.zeros(shape[rng.randint(0, len(shape) - 1) :][::-1], dtype=lib.int64)
        index = index.permute(list(range(index.dim()))[::-1])
        found.append(index if rng.random() < 0.5 else slice(None))
    return tuple(found)


@pytest.mark.parametrize("seed", range(40))
def test_strides(seed: int) -> None:
    def program(lib: Any, log: Any) -> None:
        rng = random.Random(seed)
        x = _laid_out(lib, rng)
        index, dim, shift = _indices(lib, rng, x.dim()), rng.randrange(x.dim()), rng.randint(-3, 3)
        other = rng.choice([x, x.contiguous()])
        made = [
            x[index], x.roll(shift, dim), x.roll(shift), x.roll((shift, 1), (dim, 0)),
            lib.fft.fftshift(x, dim), lib.fft.ifftshift(x), lib.cat([x, other], dim),
            lib.stack([x, other], rng.randint(0, x.dim())), lib.stack([x, other], -1),
            x.repeat_interleave(2, dim), x.repeat_interleave(lib.tensor([2]), dim),
            lib.nn.functional.glu(lib.cat([x, x], dim), dim),
        ]  # fmt: skip
        for t in made:
            log(t.stride(), t.is_contiguous())
            log.attempt(lambda t=t: t.view(-1).shape)

    same(program)
