"""`checkpoint` by path: numbers as without, fewer bytes kept for backward."""

from __future__ import annotations

import copy
import pickle
import re
from typing import Any

import jax
import numpy as np
import pytest
from flax import linen, nnx
from helpers.cheap_programs import OPTIMIZED

import leafax
from leafax import nn
from leafax._core.trie import local
from leafax._runtime import cut
from leafax.adapters import checkpoint, freeze, lora, watch
from leafax.adapters.linen import Model as LinenModel
from leafax.adapters.nnx import Model as NnxModel

WIDTH, DEPTH = 16, 2
X = np.random.default_rng(0).normal(size=(32, WIDTH)).astype("float32")


class LinenBlock(linen.Module):
    @linen.compact
    def __call__(self, x: Any, train: bool = False, scale: Any = None) -> Any:
        y = linen.Dense(WIDTH, name="inner")(x)
        y = linen.BatchNorm(not train, name="bn")(y)
        for _ in range(5):
            y = linen.tanh(y * y)
        return x + linen.Dropout(0.5, deterministic=not train)(y) * scale, None


class LinenNet(linen.Module):
    @linen.compact
    def __call__(self, x: Any, train: bool = False) -> Any:
        for i in range(DEPTH):
            x, _ = LinenBlock(name=f"blocks_{i}")(x, train=train, scale=x.mean())
        return linen.Dense(2, name="head")(x)


class NnxBlock(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.inner = nnx.Linear(WIDTH, WIDTH, rngs=rngs)
        self.bn = nnx.BatchNorm(WIDTH, rngs=rngs)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x: Any, scale: Any = None) -> Any:
        y = self.bn(self.inner(x))
        for _ in range(5):
            y = nnx.tanh(y * y)
        return x + self.dropout(y) * scale, None


class NnxNet(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.blocks = nnx.List([NnxBlock(rngs) for _ in range(DEPTH)])
        self.head = nnx.Linear(WIDTH, 2, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        for block in self.blocks:
            x, _ = block(x, scale=x.mean())
        return self.head(x)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.bn = nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x: Any, scale: Any = None) -> Any:
        y = self.bn(self.inner(x))
        for _ in range(5):
            y = leafax.tanh(y * y)
        return x + self.dropout(y) * scale, None


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(DEPTH)])
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x, _ = block(x, scale=x.mean())
        return self.head(x)


BLOCKS = {
    "linen": ("blocks_*", LinenBlock), "nnx": ("blocks.*", NnxBlock), "nn": ("blocks.*", Block),
}  # fmt: skip


def made(kind: str) -> Any:
    leafax.manual_seed(0)
    if kind == "linen":
        return LinenModel(LinenNet(), LinenNet().init(jax.random.key(0), X))
    return NnxModel(NnxNet(nnx.Rngs(0))) if kind == "nnx" else Net()


def trained(model: Any, steps: int = 3, observe: bool = False) -> tuple[list[float], Any]:
    """Train, and return the losses and all tensors."""
    leafax.manual_seed(7)
    optimizer = leafax.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (model(leafax.from_numpy(X)) ** 2).mean()
        if observe:
            losses.append(loss.item())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, {name: t.tolist() for name, t in model.state_dict().items()}


def agree(mine: Any, wanted: Any) -> None:
    np.testing.assert_allclose(mine[0], wanted[0], rtol=1e-5)
    for name, value in wanted[1].items():
        np.testing.assert_allclose(mine[1][name], value, rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("kind", BLOCKS)
def test_numbers_are_those_without(kind: str) -> None:
    """Losses, weights and statistics: random masks are drawn once, statistics move once."""
    pattern = BLOCKS[kind][0]
    wanted = trained(made(kind), 4)
    model = checkpoint(made(kind), pattern)
    leafax.synchronize()
    leafax.explain(clear=True)
    agree(trained(model, 4), wanted)
    steps = [run.how for run in leafax.explain() if run.reason == "optimizer.step()"]
    assert len(steps) == 4 and "compiled" not in steps[2:], "one program, compiled once"


def kept(model: Any) -> int:
    """Return how many bytes the forward pass, run as a program of its own, leaves for backward."""
    loss = (model(leafax.from_numpy(X)) ** 2).mean()
    arrays = list(local.trace.arrays)
    leafax.synchronize()
    memory = cut.plans[-1][1].lowered(arrays).compile(OPTIMIZED).memory_analysis()
    loss.backward()
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters())
    model.zero_grad()
    leafax.synchronize()
    return int(memory.output_size_in_bytes)


@pytest.mark.parametrize("kind", BLOCKS)
def test_less_is_kept_for_backward(kind: str) -> None:
    pattern, block = BLOCKS[kind]
    model = made(kind)
    leafax.synchronize()
    plain = kept(model)
    less = kept(checkpoint(model, pattern))
    assert less < plain / 4, (less, plain)
    assert kept(checkpoint(model, block)) == less, "classes select the same"
    assert kept(checkpoint(model)) == plain


def temporaries(model: Any) -> int:
    """Return how many bytes one program with forward and backward needs besides."""
    (model(leafax.from_numpy(X)) ** 2).mean().backward()
    arrays = list(local.trace.arrays)
    leafax.synchronize()
    memory = cut.plans[-1][1].lowered(arrays).compile(OPTIMIZED).memory_analysis()
    return int(memory.temp_size_in_bytes)


def test_a_module_needs_less_in_one_program_too() -> None:
    model = made("nn")
    leafax.synchronize()
    plain = temporaries(model)
    assert temporaries(checkpoint(model, "blocks.*")) < 0.7 * plain


@pytest.mark.quick(1)
@pytest.mark.parametrize("kind", BLOCKS)
def test_with_what_else_changes_a_model(kind: str) -> None:
    """Frozen parts, low-rank factors, a watched submodule inside, copies, observed losses."""
    results = []
    for again in (False, True):
        model = made(kind)
        if again:
            model = checkpoint(model, BLOCKS[kind][0])
        lora.add(model, "**.inner.*", rank=2)
        model = copy.deepcopy(freeze(model, f"{BLOCKS[kind][0][:-1]}0", stats=True))
        with watch(model, re.compile(r"blocks.1\.inner")) as seen:
            found = trained(model, 2, observe=True)
            results.append((found, [t.grad.tolist() for t in seen.values()]))
    agree(results[1][0], results[0][0])
    assert len(results[0][1]) == 1
    np.testing.assert_allclose(results[1][1], results[0][1], rtol=1e-4, atol=1e-8)


def test_copies_and_pickles_are_computed_again_too() -> None:
    wanted = trained(made("nn"))
    model = checkpoint(made("nn"), "blocks.*")
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other.blocks[0].forward.args[0] is other.blocks[0]
        agree(trained(other), wanted)


def test_flax_models_inside_of_modules() -> None:
    def net() -> Any:
        return nn.Sequential(nn.Linear(WIDTH, WIDTH), made("nnx"))

    leafax.manual_seed(3)
    wanted = trained(net())
    leafax.manual_seed(3)
    model = checkpoint(net(), "0", "1.blocks.*")
    assert model[1].model._shared.recomputed
    agree(trained(model), wanted)
    assert not checkpoint(model, "1")[1].model._shared.recomputed


def test_parts_of_a_linen_model() -> None:
    model = made("linen")
    model.checkpoint("blocks_1", "blocks_0")
    model.blocks_0.checkpoint("inner")
    assert model._recomputed == {"blocks_1", "blocks_0", "blocks_0.inner"}
    model.blocks_0.checkpoint()
    assert model._recomputed == {"blocks_1", "blocks_0"}


@pytest.mark.parametrize("kind", BLOCKS)
def test_errors(kind: str) -> None:
    model = made(kind)
    with pytest.raises(ValueError, match="`block.*` matches no submodule; the nearest are `block"):
        checkpoint(model, "block.*")
    with pytest.raises(TypeError, match="`int` selects no submodules: give globs, compiled regu"):
        checkpoint(model, 3)
    if kind == "linen":
        with pytest.raises(RuntimeError, match="is known once it was called"):
            checkpoint(model, LinenBlock)
        model(leafax.from_numpy(X))
    with pytest.raises(ValueError, match="`GroupNorm` matches no submodule; the nearest are `"):
        checkpoint(model, {"nn": nn, "linen": linen, "nnx": nnx}[kind].GroupNorm)
    with pytest.raises(TypeError, match="expected a `leafax.nn.Module` or a model of "):
        checkpoint(X, "blocks")
