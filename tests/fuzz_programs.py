"""Random imperative programs, as source text: drawn as numbers, written with torch running along.

Each step is a tuple of small numbers; what they mean depends on the tensors that the program has
made so far (their shapes, and that is why torch runs along), so any list of steps is a program and
shrinks to a smaller one.
"""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import torch

START = (
    "a = torch.tensor([[0.5, -1.25, 2.0], [1.5, 0.25, -0.75]], dtype=torch.float64)",
    "b = torch.tensor([[1.0, 2.0, -0.5], [0.75, -1.5, 0.125]], dtype=torch.float64, "
    "requires_grad=True)",
    "c = torch.tensor([0.5, 1.5, -2.0], dtype=torch.float64, requires_grad=True)",
)
UNARY = ("sin()", "cos()", "tanh()", "sigmoid()", "neg()", "clone()", "abs()", "exp().tanh()",
         "sum()", "mean(0)", "sum(-1, keepdim=True)", "relu()", "square()",
         "contiguous()")  # fmt: skip
BINARY = ("{} + {}", "{} - {}", "{} * {}", "torch.maximum({}, {})", "{}.mul({})",
          "torch.atan2({}, {})")  # fmt: skip
NUMBER = ("{} * 0.5", "{} + 1", "2 - {}", "{} / 4", "{} ** 2", "1.5 * {}")
VIEWS = ("t()", "view(-1)", "[0]", "[..., 1:]", "[:, 0]", "[1:]", "reshape(-1)", "unsqueeze(0)",
         "detach()", "data", "expand(2, *{}.shape)", "diagonal()", "narrow(0, 0, 1)", "[::2]",
         "select(0, 0)", "squeeze()", "transpose(0, -1)", "view_as({})", "flatten()",
         "unbind(0)[0]", "chunk(2)[0]", "permute(*range({}.dim()))", "movedim(0, -1)",
         "unsqueeze(-1)[..., 0]")  # fmt: skip
INPLACE = ("mul_(0.5)", "add_(1)", "sin_()", "tanh_()", "zero_()", "fill_(0.25)", "sigmoid_()",
           "clamp_(-1, 1)", "neg_()", "pow_(2)", "div_(2)", "exp_().sin_()")  # fmt: skip
INPLACE2 = ("{}.mul_({})", "{}.add_({})", "{}.copy_({})", "{} += {}", "{} *= {}",
            "{}.sub_({}, alpha=2)")  # fmt: skip
SETITEM = ("[0] = {}", "[..., 0] = {}", "[:] = {}", "[1:] = {}", "[...] = {}", "[::2] = {}")
FLAGS = ("retain_grad()", "requires_grad_()", "requires_grad_(False)", "detach_()",
         "requires_grad = True", "grad = None", "register_hook(lambda g: g * 2)",
         "register_hook(lambda g: see.gradients(g))", "register_hook(lambda g: None)")  # fmt: skip
SCOPES = ("torch.no_grad()", "torch.enable_grad()", "torch.set_grad_enabled(False)")
KINDS = 11
Step = tuple[int, int, int, int]


class Ignore:
    gradients = __call__ = lambda self, *x: None


def write(steps: list[Step]) -> list[str]:
    """The statements of a program."""
    lines = list(START)
    space: dict[str, Any] = {"torch": torch, "see": Ignore()}
    for line in lines:
        exec(line, space)
    names, made, loose = ["a", "b", "c"], 0, False
    for kind, i, j, k in steps:
        x = names[-1 - i % len(names)]
        fits = [n for n in names if _fits(space[n], space[x])]
        y = fits[j % len(fits)]
        new = f"x{made}"
        kind %= KINDS
        if kind == 0:
            line = f"{new} = {x}.{UNARY[k % len(UNARY)]}"
        elif kind == 1:
            line = f"{new} = " + BINARY[k % len(BINARY)].format(x, y)
        elif kind == 2:
            line = f"{new} = " + NUMBER[k % len(NUMBER)].format(x)
        elif kind in (3, 4):
            view = VIEWS[k % len(VIEWS)]
            view = view.format(x if "shape" in view or "dim" in view else y)
            line = f"{new} = {x}{view}" if view[0] == "[" else f"{new} = {x}.{view}"
        elif kind == 5:
            line = f"{x}.{INPLACE[k % len(INPLACE)]}"
        elif kind == 6:
            line = INPLACE2[k % len(INPLACE2)].format(x, y)
        elif kind == 7:
            line = x + SETITEM[k % len(SETITEM)].format(y if j % 2 else 0.5)
        elif kind == 8:
            line = f"{x}.{FLAGS[k % len(FLAGS)]}"
        elif kind == 9:
            line = _backward(x, y, j, k)
        else:
            line = f"{new} = {x}.grad" if k % 3 == 2 else "cut()"
        if j % 5 == 4 and kind < 9:
            line = f"with {SCOPES[k % len(SCOPES)]}: {line}"
        with warnings.catch_warnings(), contextlib.suppress(Exception):
            warnings.simplefilter("ignore")
            exec(line, space)
            if isinstance(space.get(new), torch.Tensor):
                names.append(new)
                made += 1
            else:
                space.pop(new, None)
        loose = loose or "requires_grad_" in line
        lines.append(line)
    return lines


def _fits(y: torch.Tensor, x: torch.Tensor) -> bool:
    try:
        return torch.broadcast_shapes(x.shape, y.shape) == x.shape
    except RuntimeError:
        return False


def _backward(x: str, y: str, j: int, k: int) -> str:
    keep = ", retain_graph=True" if j % 2 else ""
    return (
        f"{x}.sum().backward({keep[2:]})",
        f"{x}.backward(torch.ones_like({x}){keep})",
        f"({x} * {x}).sum().backward({keep[2:]})",
        f"see.gradients(*torch.autograd.grad({x}.sum(), {y}, allow_unused=True{keep}))",
        f"see.gradients(*torch.autograd.grad({x}.sum(), [b, {y}]{keep}))",
        f"{x}.sum().backward(inputs=[{y}]{keep})",
        f"torch.autograd.grad(({x} * {x}).sum(), b, create_graph=True)[0].sum().backward()",
    )[k % 7]


def program(lines: list[str], watch: bool = False) -> Any:
    """The statements as a function for `sameness.run`.

    Every line's error is noted; at the end all that the variables show.

    Args:
      watch: note the flags of all tensors after every line, too.
    """
    codes = [compile(line, f"line {n}", "exec") for n, line in enumerate(lines)]

    def run(torch: Any, see: Any) -> None:
        space: dict[str, Any] = {"torch": torch, "see": see, "cut": lambda: _cut(torch)}
        known: set[str] = set()
        for n, code in enumerate(codes):
            try:
                exec(code, space)
            except Exception as e:
                see(n, e)
            for name in list(space):
                if isinstance(space[name], torch.Tensor):
                    known.add(name)
                    if watch:
                        see.attempt(see, n, name, space[name])
        for name in sorted(known):
            x = space[name]
            see(name)
            see.attempt(see, x)
            if x.is_leaf or x.retains_grad:
                see.gradients(x.grad)
            see.attempt(lambda x=x: x.grad_fn)

    return run


def _cut(lib: Any) -> None:
    if lib is not torch:
        lib.synchronize()
