"""`einsum`, made of views, sums and `bmm` as PyTorch makes it.

What an equation comes to for operands of certain shapes is a short list of steps, worked out once;
each step is an op on operands and earlier results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from math import prod
from typing import Any, NamedTuple

from jax import ShapeDtypeStruct

from leafax.functional.ops.linalg.einsum import einsum_terms
from leafax.functional.program.op import TABLE, Op

from ... import backends
from ..._core.handle import Handle
from ..._core.python_data import name_of_type
from ..._core.view_ops import Lens
from ..._dispatch.known_calls import in_one_step
from ..._dispatch.record import apply

_EINSUM = TABLE["einsum"]
_VIEW, _RESHAPE, _PERMUTE = TABLE["view"], TABLE["reshape"], TABLE["permute"]
_UNSQUEEZE, _DIAGONAL, _MOVEDIM = (TABLE[n] for n in ("unsqueeze", "diagonal", "movedim"))
_MUL, _BMM, _SUM = TABLE["mul"], TABLE["bmm"], TABLE["sum"]

Shape = tuple[int, ...]


class Step(NamedTuple):
    """An op on operands and earlier results, by number, and its other arguments."""

    op: Op
    inputs: tuple[int, ...]
    arguments: tuple[Any, ...]


class _Steps:
    """A list of steps in the making; `shapes` are those of the operands, then of the results."""

    def __init__(self, shapes: Sequence[Shape]) -> None:
        self.shapes = list(shapes)
        self.steps: list[Step] = []

    def do(self, op: Op, inputs: tuple[int, ...], arguments: tuple[Any, ...], shape: Any) -> int:
        self.steps.append(Step(op, inputs, arguments))
        self.shapes.append(tuple(shape))
        return len(self.shapes) - 1

    def view(self, x: int, shape: Any) -> int:
        return self.do(_VIEW, (x,), (tuple(shape),), shape)

    def permuted(self, x: int, dims: Sequence[int]) -> int:
        shape = self.shapes[x]
        return self.do(_PERMUTE, (x,), (tuple(dims),), [shape[d] for d in dims])

    def summed(self, x: int, dims: Sequence[int], keepdim: bool = True) -> int:
        """Return the sum over some dims; the tensor itself over none."""
        if not dims:
            return x
        shape = [1 if d in dims else n for d, n in enumerate(self.shapes[x])]
        if not keepdim:
            shape = [n for d, n in enumerate(shape) if d not in dims]
        return self.do(_SUM, (x,), (tuple(dims), keepdim), shape)

    def pair(self, left: int, right: int, dims: list[int]) -> int:
        """Compute `(left * right).sum(dims, True)` by one `bmm`."""
        if not dims:
            both = zip(self.shapes[left], self.shapes[right], strict=True)
            return self.do(_MUL, (left, right), (), [m if n == 1 else n for n, m in both])
        batch: list[int] = []  # dims of both, of the left one, of the right one alone
        own: list[int] = []
        others: list[int] = []
        for d in range(len(self.shapes[left])):
            n, m = self.shapes[left][d], self.shapes[right][d]
            if d in dims:
                left = self.summed(left, (d,) if m == 1 != n else ())
                right = self.summed(right, (d,) if n == 1 != m else ())
            elif n != 1:
                (batch if m != 1 else own).append(d)
            else:
                others.append(d)
        if own and others and others[-1] < own[0]:  # so the result lies as it is wanted
            left, right, own, others = right, left, others, own
        a, b = self.shapes[left], self.shapes[right]
        rows, columns = prod(a[d] for d in own), prod(b[d] for d in others)
        count, inner = prod(a[d] for d in batch), prod(a[d] for d in dims)
        x = self.permuted(left, (*batch, *own, *dims, *others))
        x = self.do(_RESHAPE, (x,), ((count, rows, inner),), (count, rows, inner))
        y = self.permuted(right, (*batch, *dims, *others, *own))
        y = self.do(_RESHAPE, (y,), ((count, inner, columns),), (count, inner, columns))
        out = self.do(_BMM, (x, y), (), (count, rows, columns))
        order = [*batch, *own, *dims, *others]
        sizes = [*(a[d] for d in (*batch, *own)), *[1] * len(dims), *(b[d] for d in others)]
        return self.permuted(self.view(out, sizes), [order.index(d) for d in range(len(order))])


@cache
def _plan(
    equation: str, shapes: tuple[Shape, ...], strategy: str | None
) -> tuple[Callable[..., Any] | None, Lens]:
    """Plan an equation: the steps to the last that is no view, and the views after it.

    Raises what PyTorch says of equations, and of shapes that do not suit them.
    """
    inputs, output = einsum_terms(equation, [ShapeDtypeStruct(s, "float32") for s in shapes])
    made = _Steps(shapes)
    hidden = [len(s) - len(labels) + 1 for s, labels in zip(shapes, inputs, strict=True)]
    under = max((n for n, x in zip(hidden, inputs, strict=True) if "..." in x), default=0)
    places: dict[str, int] = {}
    count = 0
    for label in output:
        places[label] = count
        count += under if label == "..." else 1
    kept = count
    rest = sorted({label for labels in inputs for label in labels} - {*places, "..."})
    for label in (*([] if "..." in places else ["..."]), *rest):
        places[label] = count
        count += under if label == "..." else 1
    # How many operands have more than one element along each dim.
    long = [0] * count
    queue = [_aligned(made, k, labels, places, under, long) for k, labels in enumerate(inputs)]
    for i, j in _path(equation, shapes, strategy):
        b, a = queue.pop(j), queue.pop(i)
        dims: list[int] = []
        alone: tuple[list[int], list[int]] = [], []
        for d in range(kept, count):
            n, m = made.shapes[a][d] != 1, made.shapes[b][d] != 1
            if n and m:
                long[d] -= 1
                if long[d] == 1:
                    dims.append(d)
                    long[d] = 0
            elif long[d] == 1 and (n or m):
                alone[0 if n else 1].append(d)
                long[d] = 0
        out = made.pair(made.summed(a, alone[0]), made.summed(b, alone[1]), dims)
        queue.insert(0 if strategy is None else len(queue), out)
    if count > kept and len(shapes) > 1:
        made.view(queue[0], made.shapes[queue[0]][:kept])
    elif count > kept:
        made.summed(queue[0], tuple(range(kept, count)), False)
    heads = [k for k, step in enumerate(made.steps, 1) if not step.op.view]
    head = heads[-1] if heads else 0
    lens: Lens = tuple((step.op, step.arguments, {}) for step in made.steps[head:])
    return (partial(_run, made.steps[:head]) if head else None), lens


def _aligned(
    made: _Steps, x: int, labels: list[str], places: dict[str, int], under: int, long: list[int]
) -> int:
    """Return an operand with the dims that all have, in one order."""
    operand, shape, where = x, list(made.shapes[x]), [-1] * len(long)
    dim = 0
    for label in labels:
        if label == "...":
            own = len(made.shapes[operand]) - len(labels) + 1
            targets = range(places[label] + under - own, places[label] + under)
        elif where[places[label]] >= 0:  # the diagonal of the two dims
            first = where[places[label]]
            n = shape.pop(dim)
            turned = [m for d, m in enumerate(shape) if d != first] + [n]
            x = made.do(_DIAGONAL, (x,), (0, first, dim), turned)
            x = made.do(_MOVEDIM, (x,), (-1, first), shape)
            continue
        else:
            targets = range(places[label], places[label] + 1)
        for place in targets:
            long[place] += shape[dim] != 1
            where[place] = dim
            dim += 1
    for place, at in enumerate(where):
        if at < 0:
            shape.append(1)
            x = made.do(_UNSQUEEZE, (x,), (dim,), shape)
            where[place] = dim
            dim += 1
    return made.permuted(x, where)


def _path(equation: str, shapes: tuple[Shape, ...], strategy: str | None) -> list[tuple[int, int]]:
    """Choose which operands are contracted one after another, the lower number first."""
    if strategy is None:
        return [(0, 1)] * (len(shapes) - 1)
    from opt_einsum import contract_path  # type: ignore[import-untyped]  # JAX brings it

    found, _ = contract_path(equation, *shapes, shapes=True, optimize=strategy)
    return [(min(step), max(step)) for step in found]


def einsum(*args: Any) -> Any:
    """Sum of products over the subscripts that the output does not name.

    Args:
      args: an equation (`"ij,jk->ik"`) and its operands; or each operand followed by the list of
        its subscripts (numbers below 52, and `...`), with that of the output last, or without.

    Raises:
      RuntimeError: for equations and shapes that do not suit each other.
      ValueError: for subscripts out of range.

    >>> import leafax
    >>> leafax.einsum("ij,jk->ik", leafax.ones(2, 3), leafax.ones(3, 4)).shape
    torch.Size([2, 4])
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one "
            "operand and its subscripts list"
        )
    if isinstance(args[0], Handle):
        args = _spelt(args)
    equation, operands = args[0], args[1:]
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        return einsum(equation, *operands[0])
    if not isinstance(equation, str):
        raise TypeError(
            f"einsum(): argument 'equation' (position 1) must be str, not {type(equation).__name__}"
        )
    for k, x in enumerate(operands):
        if not isinstance(x, Handle):
            raise TypeError(
                f"expected Tensor as element {k} in argument 1, but got {name_of_type(x)}"
            )
    told: Any = backends.opt_einsum
    strategy = told.strategy if told.enabled and len(operands) > 2 else None
    return _made(equation, strategy, *operands)


@in_one_step
def _made(equation: str, strategy: str | None, *operands: Any) -> Any:
    head, lens = _plan(equation, tuple([x._v.shape for x in operands]), strategy)
    made = operands[0] if head is None else head(*operands)
    for op, arguments, _ in lens:
        made = apply(op, made, *arguments)
    return made


def _run(steps: list[Step], *operands: Any) -> Any:
    """Take steps; the result of the last."""
    found = [*operands]
    for op, inputs, arguments in steps:
        found.append(apply(op, *[found[i] for i in inputs], *arguments))
    return found[-1]


def _spelt(args: Any) -> tuple[Any, ...]:
    """Turn operands with lists of subscripts into an equation and operands."""
    lists = [_letters(x) for x in args[1::2]]
    equation = ",".join(lists)
    if len(args) % 2:
        equation += "->" + _letters(args[-1])
        return (equation, *args[:-1:2])
    return (equation, *args[::2])


def _letters(subscripts: Any) -> str:
    letters = ""
    for s in subscripts:
        if s is Ellipsis:
            letters += "..."
        elif 0 <= s < 26:
            letters += chr(ord("A") + s)
        elif 26 <= s < 52:
            letters += chr(ord("a") + s - 26)
        else:
            raise ValueError(
                "einsum(): subscript in subscript list is not within the valid range [0, 52)"
            )
    return letters
