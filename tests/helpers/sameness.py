"""Run one program with torch and with leafax, and compare all that a user can see."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

import leafax

# What PyTorch's warnings from C++ end in; those of leafax name the user's line instead.
_TRIGGERED = re.compile(r"\s*\(Triggered internally at .*\)$", re.S)
_ADDRESS = re.compile(r"0x[0-9a-f]+")


class Log:
    """The record of a program: facts at once, values at the end (reading one would cut)."""

    def __init__(self, lib: Any, eager: bool = False) -> None:
        self.lib, self.eager = lib, eager
        self.lines: list[Any] = []

    def __call__(self, *things: Any) -> None:
        """Note what `things` are: tensors, graph nodes, containers or plain values."""
        for thing in things:
            self.lines.append(self.look(thing))

    def gradients(self, *things: Any) -> None:
        """Note gradients: whether they are views, and their versions, is PyTorch's own affair.

        So are the names of the nodes that differentiate a gradient.
        """
        for thing in things:
            seen = self.look(thing)
            if isinstance(thing, self.lib.Tensor):
                seen[0].pop("is_view"), seen[0].pop("version", None)
                if thing.grad_fn is not None:
                    seen[0].pop("grad_fn"), seen[0].pop("next")
            self.lines.append(seen)

    def look(self, x: Any) -> Any:
        if isinstance(x, self.lib.Tensor):
            return facts(x), self.value(x)
        if isinstance(x, (tuple, list)):
            return type(x).__name__, [self.look(y) for y in x]
        if isinstance(x, dict):
            return {k: self.look(v) for k, v in x.items()}
        if hasattr(x, "next_functions"):
            return graph(x)
        if isinstance(x, BaseException):
            return error(x)
        if isinstance(x, self.lib.dtype) or isinstance(x, type):
            return str(x).replace("leafax", "torch")
        return x

    def value(self, x: Any) -> Any:
        with self.lib.inference_mode() if x.is_inference() else self.lib.no_grad():
            copy = x.clone()
        return Value(copy.detach().numpy()) if self.eager else copy

    def attempt(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call `fn`, note its error or what it returns."""
        try:
            result = fn(*args, **kwargs)
        except Exception as e:
            self.lines.append(error(e))
            return None
        self(result)
        return result

    @contextmanager
    def catch(self) -> Any:
        """Note the error of the block; "no error" if there was none."""
        try:
            yield
        except Exception as e:
            self.lines.append(error(e))
        else:
            self.lines.append("no error")

    def finished(self) -> list[Any]:
        return [self._finish(line) for line in self.lines]

    def _finish(self, x: Any) -> Any:
        if isinstance(x, self.lib.Tensor):
            return Value(x.detach().numpy())
        if isinstance(x, (tuple, list)):
            return [self._finish(y) for y in x]
        if isinstance(x, dict):
            return {k: self._finish(v) for k, v in x.items()}
        return x


class Value:
    """An array that equals another of the same dtype within rounding."""

    rounding = 1e-9  # of float64

    def __init__(self, array: Any) -> None:
        self.array = np.array(array)

    def __eq__(self, other: Any) -> bool:
        a, b = self.array, other.array
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        if a.dtype.kind not in "fc":
            # Bits of float64 numbers (`x.view(torch.int64)`), whose last few are rounding.
            bits = (a.dtype == np.int64) & (np.abs(a // 2) > 2**51)
            return bool(((a == b) | bits & (np.abs(a // 2 - b // 2) <= 2)).all())
        tol = self.rounding if a.dtype.name in ("float64", "complex128") else 1e-5
        return bool(np.allclose(a, b, rtol=tol, atol=tol, equal_nan=True))

    def __repr__(self) -> str:
        return f"{self.array.tolist()}"


@contextmanager
def rounded_as(log: list[Any]) -> Iterator[None]:
    """Within the block float64 values may differ as those of float32 do, if `log` shows any."""
    before = Value.rounding
    Value.rounding = 1e-6 if "'torch.float32'" in repr(log) else before
    try:
        yield
    finally:
        Value.rounding = before


def facts(x: Any) -> dict[str, Any]:
    """The flags of a tensor."""
    fn = x.grad_fn
    seen = {
        "dtype": str(x.dtype),
        "shape": tuple(x.shape),
        "requires_grad": x.requires_grad,
        "is_leaf": x.is_leaf,
        "grad_fn": None if fn is None else fn.name(),
        "next": None if fn is None else [f and f.name() for f, _ in fn.next_functions],
        "output_nr": x.output_nr,
        "retains_grad": x.retains_grad,
        "is_view": x._is_view(),
        "inference": x.is_inference(),
    }
    if not x.is_inference():
        seen["version"] = x._version
    return seen


def graph(node: Any) -> list[Any]:
    """The graph from a node on: each node's name and where its edges lead, in walking order."""
    numbers: dict[Any, int] = {}
    rows: list[Any] = []

    def visit(n: Any) -> int | None:
        if n is None:
            return None
        if n in numbers:
            return numbers[n]
        numbers[n] = len(numbers)
        row: list[Any] = [n.name()]
        rows.append(row)
        row.append([(visit(m), i) for m, i in n.next_functions])
        return numbers[n]

    visit(node)
    return rows


def error(e: BaseException) -> tuple[str, str]:
    text = _TRIGGERED.sub("", str(e)).split("\nException raised from")[0]  # C++ frames
    # PyTorch hides some of its error classes behind an underscore.
    return type(e).__name__.lstrip("_"), _ADDRESS.sub("0x", text)


Program = Callable[[Any, Log], Any]


def run(program: Program, lib: Any, *, eager: bool = False, cut_at: int | None = None) -> list[Any]:
    """Run the program under `lib` and return what it shows.

    Args:
      eager: look at values at once.
      cut_at: run what is pending before the line of this number is executed, counting executed
        lines; -1 before every line.
    """
    log = Log(lib, eager)
    always = lib.is_warn_always_enabled()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lib.set_warn_always(True)  # also of what another test was warned of
        old = sys.gettrace()
        if cut_at is not None:
            sys.settrace(_cutter(program, cut_at))
        try:
            log(program(lib, log))
        except Exception as e:
            log(e)
        finally:
            lib.set_warn_always(always)
            if cut_at is not None:
                sys.settrace(old)
    for w in caught:
        if "torch.jit.script" in str(w.message):
            continue  # what torch imports when the first dual tensor is made
        text = _ADDRESS.sub("0x", _TRIGGERED.sub("", str(w.message)))
        log((w.category.__name__, text.replace("leafax", "torch")))
    return log.finished()


def _cutter(program: Program, cut_at: int) -> Any:
    """A trace function that calls `synchronize()` between lines of the program."""
    count = 0
    code = program.__code__

    def local(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        if event == "line":
            if cut_at in (-1, count):
                leafax.synchronize()
            count += 1
        return local

    return lambda frame, event, arg: local if frame.f_code is code else None


def lines(program: Program) -> int:
    """Count the lines that the program executes."""
    count = 0
    code = program.__code__

    def local(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return local

    sys.settrace(lambda frame, event, arg: local if frame.f_code is code else None)
    try:
        run(program, torch)
    finally:
        sys.settrace(None)
    return count


def same(program: Program, *, everywhere: bool = False) -> Program:
    """Compare `program(lib, log)` under both libraries; usable as a decorator.

    leafax runs it anew, then again from memory, then looking at each value at once, and then with
    a cut before every line; with `everywhere` also with a single cut before each of the lines.
    """
    expected = run(program, torch)
    assert "NameError" not in repr(expected[-8:]), f"the program itself is wrong: {expected[-8:]}"
    assert_equal(run(program, leafax), expected, "first run")
    assert_equal(run(program, leafax), expected, "second run")
    assert_equal(run(program, leafax), expected, "third run")
    assert_equal(run(program, leafax, eager=True), expected, "values read at once")
    assert_equal(run(program, leafax, cut_at=-1), expected, "cut at every line")
    if everywhere:
        for k in range(lines(program)):
            assert_equal(run(program, leafax, cut_at=k), expected, f"cut before line {k}")
    return program


def difference(ours: list[Any], theirs: list[Any]) -> str | None:
    """The first entry of two logs that is not the same, None if all are."""
    for k, (a, b) in enumerate(zip(ours, theirs, strict=False)):
        if not a == b:
            return f"entry {k}:\n  leafax: {a}\n  torch:  {b}"
    if len(ours) != len(theirs):
        return f"{ours[len(theirs) :]} / {theirs[len(ours) :]}"
    return None


def assert_equal(ours: list[Any], theirs: list[Any], what: str) -> None:
    found = difference(ours, theirs)
    assert found is None, f"{what}, {found}"
