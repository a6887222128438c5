"""Compilations are counted and named, also those that JAX makes in silence."""

from __future__ import annotations

import io
import re
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import leafax
from leafax._runtime import compile_notice
from leafax._runtime.compile_notice import Notice
from leafax._tracing.inputs import from_array
from leafax.backends import _float32_precision

LOOP = """turns = {turns}
weight = leafax.ones({width}, 2, requires_grad=True)
optimizer = leafax.optim.SGD([weight], lr=0.1)
for rows, body in turns:
    x = leafax.from_numpy(np.ones((rows, {width}), np.float32))
    loss = body(x @ weight).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
STEP = 9  # its line there


@pytest.fixture(autouse=True)
def _afterwards_nothing_is_told() -> Iterator[None]:
    leafax.synchronize()
    leafax.explain(clear=True)
    yield
    leafax.set_explain("off")


def _model(name: str) -> Any:
    """Make the same function anew."""

    def model(x: Any) -> Any:
        return jnp.tanh(x)

    return model


def _warned(file: str, width: int, turns: str, mode: str = "warn") -> Any:
    """Run a loop whose lines are of a file of their own; return what it was warned of."""
    leafax.set_explain(mode)
    names = {"leafax": leafax, "np": np, "model": _model}
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        exec(compile(LOOP.format(turns=turns, width=width), file, "exec"), names)
    return [(str(w.message), w.filename, w.lineno) for w in found]


@pytest.mark.parametrize(
    "turns, width, change",
    [
        (
            "[(n, leafax.sin) for n in (5, 6, 7)]", 31,
            "input 0, which `mm` (loop31.py:6) takes, is float32[7, 31] where it was "
            "float32[6, 31]",
        ),
        (
            "[(5, lambda x, dim=dim: leafax.cumsum(x, dim)) for dim in (0, -1, 1)]", 32,
            "`dim` of `cumsum` (loop32.py:1) is 1 where it was -1",
        ),
        (
            "[(5, f) for f in (leafax.sin, leafax.cos, leafax.tanh)]", 33,
            "`tanh` (loop33.py:6) is computed in it, which was not before",
        ),
        (
            "[(5, lambda x, f=f: leafax.call_jax(f, x)) for f in map(model, 'abc')]", 34,
            "the JAX function `model` (loop34.py:1) was traced anew",
        ),
    ],
)  # fmt: skip
def test_the_third_compilation_from_a_line_says_what_changed(
    turns: str, width: int, change: str
) -> None:
    file = f"loop{width}.py"
    said = f"{file}:{STEP} has compiled its program 3 times: {change}"
    assert _warned(file, width, turns) == [(said, file, STEP)]


def test_nothing_is_said_of_two_compilations_or_unless_asked_for() -> None:
    assert _warned("twice.py", 36, "[(n, leafax.sin) for n in (5, 5, 6, 6)]") == []
    assert _warned("quiet.py", 37, "[(n, leafax.sin) for n in (5, 6, 7)]", "off") == []
    with pytest.raises(ValueError, match="^`mode` must be 'warn' or 'off', got 'loud'$"):
        leafax.set_explain("loud")


def test_ops_alone_and_code_of_the_user_are_told_from_programs() -> None:
    jax.jit(lambda x: x * 3 + 1)(jnp.ones(41))
    _warned("kinds.py", 38, "[(5, leafax.sin)] * 3")
    report = leafax.explain(clear=True)
    kinds = [c.kind for c in report.compilations]
    assert kinds.count("program") == report.compiles == 1
    assert kinds.count("yours") >= 1 and kinds[0] == "yours"
    (program,) = (c for c in report.compilations if c.kind == "program")
    assert program.where == ("kinds.py", STEP) and program.name == "a program of 7 ops"
    assert str(report).splitlines()[-1].startswith(f"XLA compiled {len(kinds)} times in ")
    assert ": 1 of programs, " in str(report)
    assert leafax.explain().compilations == []


def test_a_program_that_jax_compiles_anew_says_why() -> None:
    """An array that was put on its device by hand is another input to JAX, not to leafax."""

    def look(x: jax.Array) -> None:
        (from_array(x) @ weight).tanh().sum().item()

    weight = leafax.ones(3, 39, requires_grad=True)
    x = jnp.ones((64, 3))
    bound = jax.device_put(x, jax.devices()[0])
    for _ in range(3):
        look(x)
    leafax.explain(clear=True)
    look(bound)
    look(bound)
    again, cached = leafax.explain(clear=True)
    if again.how == "cached":  # this JAX takes both for one
        assert again.why == ""
        return
    assert (again.how, again.why) == ("compiled", "input 0 is bound to its device")
    assert (cached.how, cached.why) == ("cached", "")


def test_each_new_program_says_how_it_ran_and_what_is_new() -> None:
    """New lengths are compiled at first; a fourth runs op by op, until it comes again."""
    _warned("lengths.py", 43, "[(n, leafax.sin) for n in (5, 6, 7, 8, 8, 8, 5)]", "off")
    report = leafax.explain(clear=True)
    runs = [run for run in report if run.reason == "optimizer.step()"]
    assert [run.how for run in runs] == [*["compiled"] * 3, "op by op", "compiled", *["cached"] * 2]
    said = (
        "input 0, which `mm` (lengths.py:6) takes, is float32[{}, 43] where it was float32[{}, 43]"
    )
    again = "it is compiled whole when it comes twice in a row, or has taken {} ms op by op"
    whys = [run.why for run in runs]
    assert whys[:3] == ["", said.format(6, 5), said.format(7, 6)]
    assert whys[3].startswith(said.format(8, 7) + "; ")
    assert re.sub(r"\d+ ms", "{} ms", whys[3].split("; ")[1]) == again
    assert whys[4:] == [""] * 3
    assert f"lengths.py:{STEP}: {said.format(6, 5)}\n" in str(report)


def test_lengths_of_a_loop_are_told_once() -> None:
    weight = leafax.ones(44, 44)
    leafax.synchronize()
    leafax.explain(clear=True)
    for n in (2, 3, 4, 5):
        (leafax.from_numpy(np.ones((n, 44), np.float32)) @ weight).softmax(0).cumsum(1).sum().item()
    first, second, rest = str(leafax.explain(clear=True)).splitlines()[1:4]
    assert "which `mm`" not in first and "is float32[3, 44] where it was float32[2, 44]" in second
    assert rest.startswith("     the like, 2 times more, ")


def test_long_loops_and_parameters_say_that_they_are_not_compiled_whole() -> None:
    x = leafax.full((3,), 0.5)
    for _ in range(900):
        x = x.sin() * 1.25
    x.tolist()
    model = leafax.nn.Linear(45, 2)
    leafax.optim.SGD(model.parameters(), lr=0.1)
    whys = [run.why for run in leafax.explain(clear=True)]
    long = "pieces of so long a program are compiled once for all lengths"
    assert whys == [long, "it makes parameters"]


def test_what_a_turn_begins_with_is_told_as_a_piece() -> None:
    """It is no compilation of the step: of three, nothing is warned."""
    leafax.set_explain("warn")
    total: Any = 0.5
    weight = leafax.ones(46, 2, requires_grad=True)
    optimizer = leafax.optim.SGD([weight], lr=0.1)
    leafax.explain(clear=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(4):
            optimizer.zero_grad()
            loss = (leafax.from_numpy(np.ones((5, 46), np.float32)) @ weight).sin().sum()
            loss.backward()
            optimizer.step()
            total = 0.73 * total + loss.detach()
    report = leafax.explain(clear=True)
    assert [c.kind for c in report.compilations].count("piece") == 2  # a number, then a sum
    assert [run.how for run in report] == ["compiled", *["cached"] * 3]
    beside = "what it begins with, {}, runs by itself"
    told = [beside.format(ops) for ops in ("1 op", "2 ops", "2 ops")]
    assert [run.why for run in report] == ["", *told]


def test_precisions_are_told_apart() -> None:
    def look() -> str:
        (leafax.from_numpy(np.ones((3, 47), np.float32)) @ weight).sum().item()
        return list(leafax.explain(clear=True))[-1].why

    weight = leafax.ones(47, 5)
    leafax.synchronize()
    look()
    before = leafax.get_float32_matmul_precision()
    try:
        leafax.set_float32_matmul_precision("medium")
        assert "are of precision 'default' where it was 'highest'" in look()
    finally:
        leafax.set_float32_matmul_precision(before)
        _float32_precision.forget()


def test_as_many_compilations_are_counted_as_jax_reports() -> None:
    def on(event: str, duration_secs: float, **facts: Any) -> None:
        events.append(event)

    events: list[str] = []
    jax.monitoring.register_event_duration_secs_listener(on)
    try:
        _warned("counted.py", 48, "[(n, leafax.sin) for n in (5, 6, 7, 8, 8)]", "off")
        jax.clear_caches()
        _warned("counted.py", 48, "[(n, leafax.sin) for n in (5, 8)]", "off")
    finally:
        jax.monitoring.unregister_event_duration_listener(on)
    reported = events.count("/jax/core/compile/backend_compile_duration")
    assert len(leafax.explain().compilations) == reported > 6


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_long_compilation_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)  # as if rich were not installed
    monkeypatch.setattr(compile_notice, "AFTER", 3600)
    out = _Terminal()
    notice = Notice("a program of 7 ops at train.py:3", out)
    notice.show()
    assert out.getvalue() == "leafax compiles a program of 7 ops at train.py:3 ..."
    notice.end(2.345)
    assert out.getvalue().endswith(" ... 2.3 s\n")
    short = Notice("little", out)
    short.end(0.1)
    short.show()
    assert "little" not in out.getvalue()


def test_rich_shows_it_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")
    monkeypatch.setattr(compile_notice, "AFTER", 3600)
    out = _Terminal()
    notice = Notice("a program", out)
    notice.show()
    notice.end(2.0)
    assert "leafax compiles a program ..." in out.getvalue()


def test_only_terminals_are_shown_what_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_notice, "AFTER", 0)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    for kind, shown in ((io.StringIO, False), (_Terminal, True)):
        out = kind()
        monkeypatch.setattr(sys, "stderr", out)
        _warned("shown.py", 40 + shown, "[(5, leafax.sin)]")
        said = out.getvalue()
        assert ("leafax compiles a program of 7 ops at shown.py:9 ..." in said) is shown, said
        assert bool(said) is shown
