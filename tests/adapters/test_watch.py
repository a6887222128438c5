"""Activations, their gradients and hooks by path, against torch modules with the same weights."""

from __future__ import annotations

import copy
import pickle
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import linen as nn
from flax import nnx

import leafax
from leafax.adapters import linen
from leafax.adapters import nnx as nnx_models

X = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")


class Block(nn.Module):
    """A layer with a nonlinearity."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        return nn.tanh(nn.Dense(3, name="dense")(x))


class Net(nn.Module):
    """Three blocks and a head; the first block is called twice."""

    def setup(self) -> None:
        self.blocks = [Block() for _ in range(3)]
        self.head = nn.Dense(2)
        self.drop = nn.Dropout(0.5)

    def __call__(self, x: Any, train: bool = False) -> Any:
        x = self.blocks[0](self.blocks[0](x))
        x = self.drop(self.blocks[1](x), deterministic=not train)
        return self.head(self.blocks[2](x))


class NnxBlock(nnx.Module):
    """The same in nnx."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.dense = nnx.Linear(3, 3, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return nnx.tanh(self.dense(x))


class NnxNet(nnx.Module):
    """The same in nnx."""

    def __init__(self) -> None:
        rngs = nnx.Rngs(0)
        self.blocks = nnx.List([NnxBlock(rngs) for _ in range(3)])
        self.head = nnx.Linear(3, 2, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        x = self.blocks[0](self.blocks[0](x))
        return self.head(self.blocks[2](self.drop(self.blocks[1](x))))


class TorchBlock(torch.nn.Module):
    """The same in torch."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = torch.nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        return torch.tanh(self.dense(x))


class TorchNet(torch.nn.Module):
    """The same in torch."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList([TorchBlock() for _ in range(3)])
        self.head = torch.nn.Linear(3, 2)

    def forward(self, x: Any) -> Any:
        x = self.blocks[0](self.blocks[0](x))
        return self.head(self.blocks[2](self.blocks[1](x)))


class Case:
    """A model and the torch module with its weights."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        if kind == "linen":
            self.model: Any = linen.Model(Net(), Net().init(jax.random.key(0), X))
        else:
            self.model = nnx_models.Model(NnxNet())
        self.model.eval()
        self.net = TorchNet()
        with torch.no_grad():
            for name, p in self.net.named_parameters():
                mine = self.model.get_parameter(self.path(name).replace("weight", "kernel"))
                p.copy_(torch.tensor(mine.detach().numpy().T.copy()))

    def path(self, name: str) -> str:
        return name.replace("blocks.", "blocks_") if self.kind == "linen" else name

    def part(self, name: str) -> Any:
        return self.net.get_submodule(name)

    def both(self, what: Any) -> tuple[Any, Any]:
        return what(leafax, self.model, lambda m, n: m.get_submodule(self.path(n))), what(
            torch, self.net, lambda m, n: m.get_submodule(n)
        )


@pytest.fixture(params=["linen", "nnx"])
def case(request: Any) -> Case:
    return Case(request.param)


def close(a: Any, b: Any) -> None:
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_activations_and_gradients_are_torchs(case: Case) -> None:
    kept: dict[str, Any] = {}

    def keep(name: str) -> Any:
        def hook(module: Any, args: Any, out: Any) -> None:
            out.retain_grad()
            kept.setdefault(name, []).append(out)

        return hook

    for name in ("blocks.0", "blocks.1", "blocks.1.dense", "head"):
        case.part(name).register_forward_hook(keep(name))
    wanted_out = case.net(torch.tensor(X))
    (wanted_out**2).sum().backward()
    pattern = case.path("blocks.*").replace("/", ".")
    seen = case.model.watch(pattern, case.path("blocks.1/dense"), "head")
    out = case.model(leafax.from_numpy(X))
    (out**2).sum().backward()
    close(out, wanted_out)
    assert set(seen) == {case.path(n) for n in (*kept, "blocks.2")} and len(seen) == 5
    for name, wanted in kept.items():
        found = seen.every[case.path(name)]
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            close(a, b)
            close(a.grad, b.grad)
    close(seen[case.path("blocks.0").replace(".", "/")], kept["blocks.0"][-1])
    for name, p in case.net.named_parameters():
        mine = case.model.get_parameter(case.path(name).replace("weight", "kernel"))
        close(mine.grad, p.grad.mT if p.dim() == 2 else p.grad)


@pytest.mark.parametrize("kind", [np.asarray, jnp.asarray])
def test_batches_that_are_arrays_are_not_taken_for_constants(case: Case, kind: Any) -> None:
    part = case.path("blocks.2")
    for seed in range(2):
        # Large enough for NumPy to abbreviate, equal where it does not.
        batch = np.zeros((400, 3), "float32")
        batch[10:-10] = np.random.default_rng(seed).normal(size=(380, 3))
        with case.model.watch(part) as seen:
            out = case.model(kind(batch))
        close(out, case.net(torch.tensor(batch)))
        close(case.model.head(seen[part]), out)


def test_it_ends_and_costs_nothing_then(case: Case) -> None:
    case.model(leafax.from_numpy(X)).sum().backward()

    def ops() -> tuple[int, int]:
        case.model.zero_grad()
        case.model(leafax.from_numpy(X)).sum().backward()
        leafax.synchronize()
        run = leafax._runtime.cut.history[-1]
        return run.nodes, run.outputs

    leafax.synchronize()
    before = ops()
    with case.model.watch(case.path("blocks.1")) as seen:
        assert ops() == (before[0] + 2, before[1] + 2)  # one more piece, forward and backward
    assert ops() == before
    assert seen[case.path("blocks.1")].shape == (4, 3)
    seen.remove()


def test_a_watched_step_is_one_program_and_compiles_once(case: Case) -> None:
    case.model.train()
    optimizer = leafax.optim.SGD(case.model.parameters(), lr=0.1)
    seen = case.model.watch(case.path("blocks.1"))
    for _ in range(8):
        optimizer.zero_grad()
        case.model(leafax.from_numpy(X)).sum().backward()
        optimizer.step()
    runs = list(leafax._runtime.cut.history)[-3:]
    assert {(r.reason, r.how) for r in runs} == {("optimizer.step()", "cached")}
    assert seen[case.path("blocks.1")].grad.shape == (4, 3)


def test_dropout_draws_across_the_cuts(case: Case) -> None:
    """The same numbers as unwatched, so random keys are made anew in each piece."""
    case.model.train()

    def out() -> Any:
        leafax.manual_seed(3)
        return case.model(leafax.from_numpy(X)).tolist()

    plain = out()
    with case.model.watch("head", case.path("blocks.0")):
        assert np.allclose(out(), plain)
    case.model.eval()
    assert not np.allclose(out(), plain)


def test_forward_hooks_see_and_replace(case: Case) -> None:
    def what(t: Any, model: Any, part: Any) -> Any:
        calls: list[Any] = []

        def look(module: Any, args: Any, out: Any) -> Any:
            calls.append((args[0].detach().numpy().copy(), out.detach().numpy().copy()))

        def double(module: Any, args: Any, out: Any) -> Any:
            return out * 2

        def shift(module: Any, args: Any) -> Any:
            return (args[0] + 1,)

        handles = []
        for name, kind, hook in (
            ("blocks.0", "forward_pre", shift), ("blocks.0", "forward", look),
            ("blocks.1", "forward", double), ("blocks.1", "forward", look),
        ):  # fmt: skip
            if t is torch:
                add = getattr(part(model, name), f"register_{kind}_hook")
                handles.append(add(hook))
            else:
                add = getattr(model, f"register_{kind}_hook")
                handles.append(add(case.path(name), hook))
        x = t.tensor(X, requires_grad=True)
        out = model(x)
        out.sum().backward()
        for h in handles:
            h.remove()
        return [x.grad, out, model(x)], calls

    (ours, calls), (theirs, calls_) = case.both(what)
    for a, b in zip(ours, theirs, strict=True):
        close(a, b)
    assert len(calls) == 3
    for a, b in zip(calls, calls_, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
@pytest.mark.parametrize("leaf", [False, True])
def test_full_backward_hooks_see_and_replace(case: Case, leaf: bool) -> None:
    def what(t: Any, model: Any, part: Any) -> Any:
        seen: list[Any] = []
        handles = []

        def look(module: Any, grad_input: Any, grad_output: Any) -> None:
            seen.append([None if g is None else g.numpy().copy() for g in grad_input])
            seen.append([g.numpy().copy() for g in grad_output])

        def halve(module: Any, grad_input: Any, grad_output: Any) -> Any:
            look(module, grad_input, grad_output)
            return tuple(None if g is None else g / 2 for g in grad_input)

        for name, hook in (("blocks.0", look), ("blocks.2", halve), ("head", look)):
            if t is torch:
                handles.append(part(model, name).register_full_backward_hook(hook))
            else:
                handles.append(model.register_full_backward_hook(case.path(name), hook))
        x = t.tensor(X, requires_grad=leaf)
        (model(x) ** 2).sum().backward()
        for h in handles:
            h.remove()
        return seen, [p.grad for p in model.parameters()], x.grad

    (seen, grads, x), (seen_, grads_, x_) = case.both(what)
    assert len(seen) == len(seen_) == 8
    for a, b in zip(seen, seen_, strict=True):
        assert len(a) == len(b)
        for g, h in zip(a, b, strict=True):
            assert (g is None) == (h is None)
            if g is not None:
                np.testing.assert_allclose(g, h, rtol=1e-5, atol=1e-6)
    by_size = lambda g: (tuple(sorted(g.shape)), round(float(abs(g).sum()), 4))  # noqa: E731
    for a, b in zip(sorted(grads, key=by_size), sorted(grads_, key=by_size), strict=True):
        close(abs(a).sum(), abs(b).sum())
    assert (x is None) == (x_ is None)
    if leaf:
        close(x, x_)


def test_a_frozen_part_can_be_watched_with_gradients(case: Case) -> None:
    case.model.freeze()
    with case.model.watch(case.path("blocks.1")) as seen:
        case.model(leafax.from_numpy(X)).sum().backward()
    assert seen[case.path("blocks.1")].grad is not None
    with case.model.watch("head", grad=False) as seen:
        assert not case.model(leafax.from_numpy(X)).requires_grad
    assert not seen["head"].requires_grad
    with case.model.watch("head") as seen, leafax.no_grad():
        case.model(leafax.from_numpy(X))
    assert not seen["head"].requires_grad


def test_what_is_not_there_is_named(case: Case) -> None:
    with case.model.watch("haed") as seen:
        with pytest.raises(KeyError, match="has no activation: call the model first"):
            seen["haed"]
        with pytest.raises(ValueError, match="`haed` matches no submodule that the call runs; the"):
            case.model(leafax.from_numpy(X))
    with case.model.watch(re.compile("he.*")) as seen:
        case.model(leafax.from_numpy(X))
        with pytest.raises(KeyError, match="the nearest that have are `head`"):
            seen["haed"]


def test_a_hook_must_keep_the_shape(case: Case) -> None:
    message = (
        "a hook at `head` returned [4, 1] of torch.float32 in place of [4, 2] of torch.float32"
    )
    with case.model.register_forward_hook("head", lambda part, args, out: out[:, :1]):
        with pytest.raises(TypeError, match=re.escape(message)):
            case.model(leafax.from_numpy(X))
    with case.model.register_forward_hook("head", lambda part, args, out: (out, out)):
        with pytest.raises(TypeError, match="a hook at `head` returned 2 values in place of 1"):
            case.model(leafax.from_numpy(X))


def test_parts_are_given_to_hooks_and_have_watchers_of_their_own() -> None:
    case = Case("nnx")
    parts: list[Any] = []
    case.model.register_forward_hook("blocks.*", lambda part, args, out: parts.append(part))
    case.model(leafax.from_numpy(X))
    assert [p is case.model.blocks[i] for p, i in zip(parts, (0, 0, 1, 2), strict=True)] == [1] * 4
    block = case.model.blocks[1]
    with block.watch("dense") as seen:
        block(leafax.from_numpy(X))
    assert list(seen) == ["dense"]


class Remat(nn.Module):
    """A block that is computed again in backward, and one under `nn.jit`."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.jit(Block)(name="fast")(x)
        x = nn.jit(Block)(name="fast_too")(x)
        return nn.remat(Block)(name="again")(x)


def test_inside_transformations() -> None:
    model = linen.Model(Remat(), Remat().init(jax.random.key(0), X))
    plain = model(leafax.from_numpy(X))
    with model.watch("fast.dense", "fast_too.dense", "again") as seen:
        out = model(leafax.from_numpy(X))
        out.sum().backward()
    close(out, plain)
    assert len(seen) == 3 and seen["fast.dense"].grad is not None
    close(seen["fast_too.dense"].tanh(), model_part(model, seen))


def model_part(model: Any, seen: Any) -> Any:
    """Compute the output of `fast_too` from the output of `fast`."""
    p = {n.rpartition(".")[2]: t for n, t in model.fast_too.named_parameters()}
    return (seen["fast.dense"].tanh() @ p["kernel"] + p["bias"]).tanh()


class Outputs(nn.Module):
    """A submodule that returns a dict, with a number in it."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        class Two(nn.Module):
            @nn.compact
            def __call__(self, x: Any, scale: float) -> Any:
                return {"a": nn.Dense(2)(x) * scale, "b": x, "n": 3}

        out = Two(name="two")(x, 2.0)
        return out["a"].sum() * out["n"] + out["b"].sum(), jnp.float32(1.0)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_model_that_was_watched_is_copied(case: Case, copied: Any) -> None:
    part, x = case.path("blocks.2"), leafax.from_numpy(X)
    with case.model.watch(part):
        before = case.model(x)
    other = copied(case.model)
    with other.watch(part) as seen:
        close(other(x), before)
    close(other.head(seen[part]), before)


def test_any_structure_of_outputs() -> None:
    model = linen.Model(Outputs(), Outputs().init(jax.random.key(0), X))
    args: list[Any] = []
    model.register_forward_hook("two", lambda part, a, out: args.append(a))
    with model.watch("two") as seen:
        out, one = model(leafax.from_numpy(X))
        out.backward()
    assert seen["two"]["a"].grad.tolist() == [[3.0, 3.0]] * 4
    assert seen["two"]["n"] == 3 and args[0][1] == 2.0 and one.item() == 1.0


def models_of_two_layers() -> list[Any]:
    """The same two layers, from linen and from nnx."""

    class Two(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            return nn.Dense(2, name="head")(nn.tanh(nn.Dense(4, name="first")(x)))

    class TwoOfNnx(nnx.Module):
        def __init__(self) -> None:
            rngs = nnx.Rngs(0)
            self.first, self.head = nnx.Linear(3, 4, rngs=rngs), nnx.Linear(4, 2, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            return self.head(nnx.tanh(self.first(x)))

    return [linen.Model.from_batch(Two(), jnp.ones((1, 3))), nnx_models.Model(TwoOfNnx())]


@pytest.mark.parametrize("library", [0, 1])
def test_hooks_on_a_part_and_on_the_model_itself(library: int) -> None:
    model = models_of_two_layers()[library]
    x = leafax.from_numpy(X)
    seen: list[Any] = []
    handles = [
        model.first.register_forward_hook(lambda part, args, out: seen.append(("f", out.shape))),
        model.head.register_forward_pre_hook(lambda part, args: (args[0] * 0,)),
        model.head.register_full_backward_hook(
            lambda part, gi, go: seen.append(("b", go[0].shape))
        ),
        model.register_forward_hook(lambda part, args, out: out + 1),
        model.register_full_backward_hook(lambda part, gi, go: seen.append(("m", go[0].shape))),
    ]
    out = model(x)
    expected = (model.head.get_parameter("bias") + 1).expand(4, 2)
    np.testing.assert_allclose(out.detach().numpy(), expected.detach().numpy(), rtol=1e-6)
    out.sum().backward()
    assert seen[0] == ("f", (4, 4))
    assert sorted(seen[1:]) == [("b", (4, 2)), ("m", (4, 2))]
    for handle in handles:
        handle.remove()
    seen.clear()
    assert model(x).std().item() > 0 and not seen
    with pytest.raises(TypeError, match="a hook is a function, got `str`"):
        model.register_forward_hook("head")


def test_what_is_watched_prints_its_shapes() -> None:
    model = models_of_two_layers()[0]
    with model.watch("first") as seen:
        assert repr(seen) == "Watched(first: no call yet)"
        model(leafax.from_numpy(X))
    assert repr(seen) == "Watched(first: float32[4, 4])"
