"""Random imperative programs, as source text: drawn as numbers, written with torch running along.

Each step is a tuple of small numbers; what they mean depends on the tensors that the program has
made so far (their shapes, and that is why torch runs along), so any list of steps is a program and
shrinks to a smaller one.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import torch
import torch.utils.checkpoint

from helpers import fuzz_rules
from helpers import fuzz_words as words
from helpers.fuzz_prelude import PRELUDE

START = (
    "a = torch.tensor([[0.5, -1.25, 2.0], [1.5, 0.25, -0.75]], dtype=torch.float64)",
    "b = torch.tensor([[1.0, 2.0, -0.5], [0.75, -1.5, 0.125]], dtype=torch.float64, "
    "requires_grad=True)",
    "c = torch.tensor([0.5, 1.5, -2.0], dtype=torch.float64, requires_grad=True)",
    "z = torch.tensor([[0.5 + 1j, -2j], [1.5, 1 - 1j]], dtype=torch.complex128, "
    "requires_grad=True)",
    "d = b * 2",
)
# The families of statements and how often each is drawn.
FAMILIES = (
    ("{new} = ", words.MAKE, 2),
    ("{new} = {x}.", words.UNARY, 3),
    ("{new} = ", words.BINARY, 3),
    ("{new} = ", words.NUMBER, 2),
    ("{new} = ", words.VIEWS, 4),
    ("{new} = ", words.MORE_VIEWS, 3),
    ("", words.SEVERAL, 2),
    ("{x}.", words.INPLACE, 5),
    ("", words.INPLACE2, 4),
    ("{x}", words.SETITEM, 2),
    ("{x}.", words.FLAGS, 3),
    ("", words.HOOKS, 2),
    ("{new} = ", words.CALLS, 2),
    ("{new} = ", words.NETWORK, 2),
    ("", words.BACKWARD, 4),
    ("", words.GRADS, 2),
    ("", words.LOOKS, 3),
    ("", ("del {x}", "cut()"), 1),
)
KINDS = [(begin, forms) for begin, forms, often in FAMILIES for _ in range(often)]
# Blocks do not fit around these: the name would be gone when the block comes round again.
ALONE = ("del ", "opt = ")
Step = tuple[int, int, int, int]


class Ignore:
    """Notes nothing."""

    gradients = __call__ = lambda self, *x: None


def write(steps: list[Step]) -> list[str]:
    """The statements of a program.

    A step whose statement torch refuses is drawn again, with other tensors, up to twice: some
    errors belong into a program, but not most of its lines.
    """
    lines = list(START)
    space: dict[str, Any] = {"torch": torch, "see": Ignore(), "cut": lambda: None, "lines": lines}
    exec(PRELUDE, space)
    for line in lines:
        exec(line, space)
    names, handles = ["a", "b", "c", "z", "d"], []
    for n, step in enumerate(steps):
        for again in range(1 + step[3] % 3):
            line = _statement(step, again, n, names, handles, space)
            refused = _error(line, space)
            if refused is None:
                break
            if fuzz_rules.told_by_data(refused):
                line = "cut()"
        made = [f"{begin}{n}{end}" for begin in "xg" for end in ("", "b", "c")]
        made = [m for m in made if m in space]
        handles += [m for m in made if hasattr(space[m], "remove")]
        fresh = [m for m in made if isinstance(space[m], torch.Tensor)]
        given = [space[m] for m in names if m in space and re.search(rf"\b{m}\b", line)]
        if any(fuzz_rules.counts_its_own_writes(space[m], *given) for m in fresh):
            line = "cut()"
            for m in made:
                del space[m]
            fresh = []
        lines.append(line)
        names = [m for m in names if m in space] + fresh
    return lines


def _statement(
    step: Step, again: int, n: int, names: list[str], handles: list[str], space: dict[str, Any]
) -> str:
    kind, i, j, k = step
    x = names[-1 - (i + again) % len(names)]
    fits = [n for n in names if _fits(space[n], space[x])]
    y, w = fits[j % len(fits)], names[k % len(names)]
    begin, forms = KINDS[kind % len(KINDS)]
    form = forms[(k + again) % len(forms)]
    form = begin + (form.format(y if j % 2 else 0.5) if begin == "{x}" else form)
    if j % 5 == 4 and not form.startswith(ALONE):
        form = words.SCOPES[k // 7 % len(words.SCOPES)] + form
    keep = "retain_graph=True" if j % 2 else ""
    # A gradient that has a graph: what its nodes are called is PyTorch's own affair.
    given = [t for t, place in ((x, "{x}"), (y, "{y}"), (w, "{w}")) if place in form]
    gradient = "create_graph" in form or any(t[0] == "g" for t in given)
    gradient = gradient or "{new} = {x}.grad" in form and "clone" not in form
    new = f"g{n}" if gradient else f"x{n}"
    if any(t[0] == "g" != x[0] for t in given) and not form.startswith("{new}"):
        return "cut()"
    h = handles[j % len(handles)] if handles else "cut"
    line = form.format(x=x, y=y, w=w, new=new, h=h, keep=keep).replace(", )", ")")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if fuzz_rules.forbidden(line, form, space, x, y, w):
            return "cut()"
    return line


def _error(line: str, space: dict[str, Any]) -> Exception | None:
    """Run the line along; how torch refused it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(line, space)
        except Exception as e:
            return e
    return None


def _fits(y: torch.Tensor, x: torch.Tensor) -> bool:
    try:
        return torch.broadcast_shapes(x.shape, y.shape) == x.shape
    except RuntimeError:
        return False


def program(lines: list[str], watch: bool = False) -> Any:
    """The statements as a function for `sameness.run`.

    Every line's error is noted; at the end all that the variables show.

    Args:
      watch: note the flags of all tensors after every line, too.
    """
    codes = [compile(line, f"line {n}", "exec") for n, line in enumerate(lines)]
    prelude = compile(PRELUDE, "prelude", "exec")

    def run(torch: Any, see: Any) -> None:
        space: dict[str, Any] = {"torch": torch, "see": see, "cut": lambda: _cut(torch)}
        exec(prelude, space)
        for n, code in enumerate(codes):
            try:
                exec(code, space)
            except Exception as e:
                see((n, e))
            if watch:
                for name in _tensors(torch, space):
                    see.attempt(see.gradients if name[0] == "g" else see, space[name])
        for name in _tensors(torch, space):
            x, show = space[name], see.gradients if name[0] == "g" else see
            see(name)
            see.attempt(show, x)
            see.attempt(lambda x=x: see.gradients(x.grad) if x.is_leaf or x.retains_grad else None)
            if show is see:
                see.attempt(lambda x=x: x.grad_fn)

    return run


def _tensors(torch: Any, space: dict[str, Any]) -> list[str]:
    return sorted(name for name, x in space.items() if isinstance(x, torch.Tensor))


def _cut(lib: Any) -> None:
    if lib is not torch:
        lib.synchronize()
