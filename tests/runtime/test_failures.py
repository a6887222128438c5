"""A failure leaves parameters, optimizer state and generator as they were before."""

from __future__ import annotations

import functools
import linecache
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen
from helpers.cheap_programs import OPTIMIZED, compiled_with

import leafax
from leafax._core.locks import sharing
from leafax.adapters.linen import Model

F = leafax.nn.functional
ROOT = Path(leafax.__file__).parent.parent
RNG = np.random.default_rng(0)
X = RNG.normal(size=(8, 4)).astype("float32")
Y = np.arange(8) % 4


class Net(linen.Module):
    @linen.compact
    def __call__(self, x: Any, train: bool = True) -> Any:
        x = jnp.tanh(linen.Dense(4)(x))
        x = linen.BatchNorm(use_running_average=not train)(x)
        return linen.Dense(4)(x)


class Plain:
    """Three weights; `state()` is all that a step may change."""

    dropped = 0.0

    def __init__(self, optimizer: str) -> None:
        leafax.manual_seed(0)
        rng = np.random.default_rng(1)
        self.params = [
            leafax.tensor(rng.normal(size=(4, 4)).astype("float32") / 2, requires_grad=True)
            for _ in range(3)
        ]
        self.optimizer = OPTIMIZERS[optimizer](self.params)

    def forward(self, x: Any) -> Any:
        for w in self.params:
            x = leafax.tanh(x @ w)
        return F.dropout(x, self.dropped) if self.dropped else x

    def state(self) -> list[np.ndarray]:
        held = [t for s in self.optimizer.state.values() for t in s.values()]
        if isinstance(self.optimizer, leafax.optim.Optax):
            held = list(self.optimizer.state_dict()["state"].values())
        tensors = [t for t in (*self.params, *held) if isinstance(t, leafax.Tensor)]
        return [*map(copied, tensors), copied(leafax.get_rng_state())]


class Dropping(Plain):
    """The same with random numbers: a step that is done again draws the same."""

    dropped = 0.1


class Frozen(Plain):
    """A Flax model, its first layer frozen; its statistics are part of the state."""

    def __init__(self, optimizer: str) -> None:
        leafax.manual_seed(0)
        module = Net()
        self.model = Model(module, module.init(jax.random.key(0), jnp.ones((1, 4))))
        self.model.freeze("Dense_0")
        self.params = list(self.model.parameters())
        trained = [p for p in self.params if p.requires_grad]
        self.optimizer = OPTIMIZERS[optimizer](trained)

    def forward(self, x: Any) -> Any:
        return self.model(x)

    def state(self) -> list[np.ndarray]:
        return [*super().state(), *map(copied, self.model.buffers())]


class Bundled(Dropping):
    """The same whose optimizer's state is bundled as soon as it can be."""

    def __init__(self, optimizer: str) -> None:
        super().__init__(optimizer)
        self.optimizer._bundling.patience = self.optimizer._bundling.left = 1


def copied(t: Any) -> np.ndarray:
    found: np.ndarray = t.detach().numpy().copy()
    return found


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda ps: leafax.optim.SGD(ps, lr=0.1, momentum=0.9),
    "Adam": lambda ps: leafax.optim.Adam(ps, lr=0.1),
    "Optax": lambda ps: leafax.optim.Optax(ps, optax.adam(0.1)),
}


def step(it: Plain, y: Any = Y, spoil: Callable[[Any], Any] | None = None, micro: int = 1) -> Any:
    """One training step, its gradient from `micro` parts of the batch; the last may be spoilt."""
    it.optimizer.zero_grad()
    parts = zip(np.split(X, micro), np.split(y, micro), strict=True)
    for k, (x, labels) in enumerate(parts):
        h = it.forward(leafax.from_numpy(x))
        if spoil is not None and k == micro - 1:
            h = spoil(h)
        loss = F.cross_entropy(h, leafax.from_numpy(labels)) / micro
        loss.backward()
    it.optimizer.step()
    return loss


def boom(x: Any) -> Any:
    raise ValueError("the callback is not well")


@jax.custom_jvp
def call_back(a: Any) -> Any:
    return jax.pure_callback(boom, jax.ShapeDtypeStruct(a.shape, a.dtype), a)


call_back.defjvp(lambda primals, tangents: (call_back(*primals), tangents[0]))


def take_memory(a: Any) -> Any:
    b = jnp.cumsum(jnp.broadcast_to(a[0, 0], (1 << 22,)))
    return a + jnp.sort((b[:, None] * b[None, :]).reshape(-1))[5]


def bad_label(it: Plain, micro: int) -> None:
    y = Y.copy()
    y[-1] = 9
    step(it, y, micro=micro).item()


def bad_callback(it: Plain, micro: int) -> None:
    step(it, spoil=lambda h: leafax.call_jax(call_back, h), micro=micro).item()


def bad_memory(it: Plain, micro: int) -> None:
    with compiled_with(OPTIMIZED):  # else XLA gives up before it knows how much memory it needs
        step(it, spoil=lambda h: leafax.call_jax(take_memory, h), micro=micro).item()


FAILURES: dict[str, tuple[Callable[[Plain, int], None], type[Exception], str]] = {
    "label": (bad_label, IndexError, "Target 9 is out of bounds."),
    "callback": (bad_callback, ValueError, "the callback is not well"),
    "memory": (bad_memory, leafax.OutOfMemoryError, "Its largest value is float32"),
}


@pytest.mark.quick(2)
@pytest.mark.parametrize("optimizer,micro", [("SGD", 1), ("Adam", 2), ("Optax", 1)])
@pytest.mark.parametrize("kind", [Plain, Frozen])
@pytest.mark.parametrize("failure", ["label", "callback"])
def test_a_step_that_fails_changes_nothing(
    failure: str, kind: type[Plain], optimizer: str, micro: int
) -> None:
    check_that_nothing_changes(failure, kind(optimizer), micro)


@pytest.mark.parametrize("failure", ["label", "callback"])
def test_a_step_that_fails_gives_its_random_numbers_back(failure: str) -> None:
    check_that_nothing_changes(failure, Dropping("SGD"), 1)


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
@pytest.mark.parametrize("kind", [Plain, Frozen])
def test_a_step_that_takes_too_much_memory_changes_nothing(kind: type[Plain]) -> None:
    check_that_nothing_changes("memory", kind("Adam"), 1)


def check_that_nothing_changes(failure: str, it: Plain, micro: int) -> None:
    fail, error, text = FAILURES[failure]
    with pytest.raises(error, match=text):  # the first step of all
        fail(it, micro)
    for _ in range(2):
        step(it, micro=micro)
    before = it.state()
    for _ in range(2):
        with pytest.raises(error, match=text):
            fail(it, micro)
    for a, b in zip(before, it.state(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert np.isfinite(step(it, micro=micro).item())


def test_parameters_that_were_never_computed_keep_what_they_began_with() -> None:
    w, v = leafax.ones(3, requires_grad=True), leafax.ones(3, requires_grad=True)
    optimizer = leafax.optim.SGD([w, v], lr=0.1)
    (leafax.call_jax(call_back, w) * v).sum().backward()
    with pytest.raises(ValueError, match="the callback is not well"):
        optimizer.step()
    assert w.tolist() == v.tolist() == [1, 1, 1]


@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
def test_an_error_of_memory_names_the_op_and_the_program() -> None:
    with pytest.raises(leafax.OutOfMemoryError) as found:
        bad_memory(Plain("SGD"), 1)
    text = str(found.value)
    assert "out of memory. This program needs" in text
    assert "float32[4194304, 4194304] in `opaque.take_memory()`" in text
    assert "64.0 TiB" in text and f"{__file__}:" in text
    assert any("in the program that optimizer.step() ran" in n for n in found.value.__notes__)


def test_what_does_not_depend_on_the_failing_op_is_computed() -> None:
    a, x = leafax.ones(3), leafax.zeros(3)
    bad = leafax.call_jax(call_back, leafax.ones(3))
    good, worse = a + 1, bad + 1
    x += 2
    written = leafax.zeros(3)
    written += bad
    for _ in range(2):
        with pytest.raises(ValueError, match="the callback is not well") as found:
            worse.tolist()
        assert any("in the program that tolist() ran" in n for n in found.value.__notes__)
    assert good.tolist() == [2, 2, 2] and x.tolist() == [2, 2, 2]
    assert written.tolist() == [0, 0, 0]  # as before the write that failed
    with pytest.raises(ValueError, match="the callback is not well"):
        bad.tolist()
    assert (a * 3).tolist() == [3, 3, 3]


def test_a_graph_that_a_failed_program_recorded_is_said_to_be_lost() -> None:
    w = leafax.ones(3, requires_grad=True)
    y = w * 2
    with pytest.raises(ValueError, match="the callback is not well"):
        leafax.call_jax(call_back, y * 1).tolist()
    assert y.tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match=r"the graph of this tensor is lost.*`detach\(\)`"):
        y.sum().backward()
    (w * 3).sum().backward()
    assert w.grad.tolist() == [3, 3, 3]


class Injected(Exception):
    pass


class Injector:
    """Raise once, at one line of the library that runs below `cut`, or of `cut` alone.

    A trace function is called for the line of a `with` again when its block ends, before `__exit__`
    and out of its reach, where no signal is ever taken: what is raised there leaves a lock locked.
    So nothing is raised at these lines, but at the next one.
    """

    def __init__(self, at: int, how: str, alone: bool = False) -> None:
        self.at, self.how, self.seen, self.inside = at, how, 0, 0
        self.alone = alone

    def __call__(self, frame: Any, event: str, arg: Any) -> Any:
        if event != "call" or not frame.f_code.co_filename.startswith(str(ROOT)):
            return None
        if (self.alone or not self.inside) and frame.f_code.co_name != "cut":
            return None
        if not self.inside:
            self.inside = id(frame)
        return self.line

    def line(self, frame: Any, event: str, arg: Any) -> Any:
        if event == "return" and id(frame) == self.inside:
            self.inside = 0
        if event == "line":
            self.seen += 1
            name, number = frame.f_code.co_filename, frame.f_lineno
            if 0 < self.at <= self.seen and not linecache.getline(name, number).lstrip().startswith(
                "with "
            ):
                sys.settrace(None)
                if self.how == "exception":
                    raise Injected
                signal.raise_signal(signal.SIGINT)
        return self.line


@functools.cache
def lines_of_a_cut(kind: type[Plain], steps: int, alone: bool = False) -> int:
    it = kind("Adam")
    for _ in range(steps):
        step(it)
    counter = Injector(-1, "", alone)
    sys.settrace(counter)
    try:
        step(it)
    finally:
        sys.settrace(None)
    return counter.seen


def losses_of(kind: type[Plain], steps: int = 6) -> list[float]:
    it = kind("Adam")
    return [step(it).item() for _ in range(steps)]


def losses_when_hurt(
    kind: type[Plain], expected: list[float], hurt: int, injector: Injector
) -> tuple[list[float], bool]:
    """Run six steps, one of which is hurt, and tell whether that one happened all the same."""
    it, losses, happened = kind("Adam"), [], False
    for k in range(6):
        if k != hurt:
            losses.append(step(it).item())
            continue
        before = [copied(p) for p in it.params]
        sys.settrace(injector)
        try:
            loss = step(it)
        except (Injected, KeyboardInterrupt):
            sys.settrace(None)
            after = [copied(p) for p in it.params]
            if not all(map(np.array_equal, before, after)):  # its loss went with the interrupt
                losses.append(expected[k])
                happened = True
                continue
            loss = step(it)
        finally:
            sys.settrace(None)
        losses.append(loss.item())
    assert not sharing._is_owned()  # type: ignore[attr-defined]
    return losses, happened


@pytest.mark.quick(2)
@pytest.mark.parametrize("how", ["exception", "interrupt"])
@pytest.mark.parametrize("kind", [Dropping, Bundled, Frozen])
def test_a_loop_that_was_hurt_anywhere_goes_on_as_if_it_was_not(
    kind: type[Plain], how: str
) -> None:
    expected = losses_of(kind)
    places = random.Random(f"{kind.__name__}{how}")
    happened = 0
    for trial in range(50):
        hurt = trial % 5
        at = places.randint(1, lines_of_a_cut(kind, hurt))
        losses, whole = losses_when_hurt(kind, expected, hurt, Injector(at, how))
        happened += whole
        np.testing.assert_allclose(losses, expected, rtol=2e-6, err_msg=f"trial {trial}, at {at}")
    assert happened < 50


@pytest.mark.parametrize("kind", [Bundled, Frozen])
def test_a_loop_that_was_hurt_at_any_line_of_cut_goes_on_as_if_it_was_not(
    kind: type[Plain],
) -> None:
    expected = losses_of(kind)
    lines = lines_of_a_cut(kind, 3, alone=True)
    assert lines > 15
    for at in range(1, lines + 1):
        injector = Injector(at, "exception", alone=True)
        losses, _ = losses_when_hurt(kind, expected, 3, injector)
        np.testing.assert_allclose(losses, expected, rtol=2e-6, err_msg=f"line {at}")
