"""The op table: one entry an op, one function an entry.

An `Op` is a pure JAX function with PyTorch's name and signature, and the columns from which all
else follows: Tensor methods, module functions, in-place variants, `grad_fn` names, what
`backward()` saves. Adding an op is adding one decorated function in `functional/ops/`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from .signatures import Signature, parameter_names

Check = Callable[..., Any]
Body = Callable[..., Any]
Decorator = Callable[..., Callable[[Body], Body]]

DRAW_WEIGHT = 30  # to compile an op that draws random numbers takes as long as so many others

TABLE: dict[str, Op] = {}
_OF_BODY: dict[Body, tuple[bool, bool, bool]] = {}  # `moves`, `steep`, `elementwise` of its op


class Op:
    """One entry of the table. Compared by identity; made once, at import.

    Attributes:
      name: PyTorch's name, `"add"`; with its namespace where it is not top-level
        (`"nn.functional.relu"` has `namespace="nn.functional"`, `name="relu"`).
      fn: the JAX body. Tensors arrive as arrays, Python numbers as numbers (or, once they have
        changed from call to call, as weakly typed scalars), all else as given. Shape and dtype
        errors are raised here, in PyTorch's words: the recorder calls it abstractly.
      backward: name of the gradient node, `"AddBackward0"`.
      saves: what backward keeps, `{"self": "other", "result": "*"}`: the saved name, and the
        input whose gradient needs it ("*": any; "*exponent": any, where `exponent` is a tensor and
        no number). The version check and `grad_fn._saved_*` read it.
      differentiable: False for ops whose results never require gradients.
      view: the result shares the first input's storage.
      inplace: an in-place variant `name_` exists.
      method: it is a Tensor method too.
      numbers: parameters whose Python numbers may become runtime inputs once they change.
      fits: parameters whose Python numbers the dtype of the result must be able to hold: of
        "any" dtype, of "narrow" ones (integers and halves), or of "integer" ones alone.
      sizes: parameters that say how long or where something is: calls that differ in these numbers
        alone are traced once for all, as those whose operands differ in their lengths are.
      need: given the op's arguments, raises what its Python numbers make impossible; the recorder
        asks where a number becomes a runtime input, of which the body could not tell.
      check: data-dependent errors, see `Fault`.
      random: the body takes a JAX PRNG key as its first argument, `key`.
      write: for a view op, `write(base, new, *rest)` is `base` with the viewed part replaced.
      overwrites: the result is written into the first input (an in-place variant).
      reuses: which result updates which input, by number, so that it may take its buffer.
      inplace_check: raises what the in-place variant alone refuses, given its arguments.
      no_gradient: the exception class and words with which `backward()` meets an op whose
        results require gradients although PyTorch has no formula for them.
      constant_outputs: positions of results that never require gradients, by PyTorch's word.
      residuals: backward after a cut keeps `jax.vjp`'s residuals, because to compute
        them again from the inputs would cost.
      moves: gradients that save no operand are the cotangent's numbers, summed, in other places,
        so complex ones need no conjugate.
      steep: derivatives of some results may not be finite, so a result without a gradient is left
        out instead of being given zeros, which could become NaN.
      elementwise: PyTorch runs it through its `TensorIterator`: the result lies in memory as the
        operands do.
      weight: how many ops it counts for, where a program may have so many: 30 if it is random. A
        function of JAX counts for those that it was traced to.

    `moves`, `steep` and `elementwise` say how the body behaves: an op that is made of the body of
    one in the table has them from there.
    """

    __slots__ = (
        "name", "namespace", "fn", "signature", "parameters", "backward", "saves",
        "differentiable", "view", "inplace", "method", "function", "numbers", "check", "random",
        "residuals", "aliases", "write", "overwrites", "reuses", "inplace_check",
        "no_gradient", "constant_outputs", "need", "fits", "sizes",
        "moves", "steep", "elementwise", "weight",
    )  # fmt: skip

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        name: str | None = None,
        namespace: str = "",
        backward: str | None = None,
        saves: Mapping[str, str] | None = None,
        differentiable: bool = True,
        view: bool = False,
        inplace: bool = False,
        method: bool = True,
        function: bool = True,
        numbers: tuple[str, ...] = (),
        fits: Mapping[str, str] | None = None,
        sizes: tuple[str, ...] = (),
        need: Callable[..., None] | None = None,
        check: Check | None = None,
        random: bool = False,
        residuals: bool = False,
        aliases: tuple[str, ...] = (),
        write: Callable[..., Any] | None = None,
        overwrites: bool = False,
        reuses: Mapping[int, int] | None = None,
        inplace_check: Callable[..., None] | None = None,
        no_gradient: tuple[type[Exception], str] | None = None,
        constant_outputs: tuple[int, ...] = (),
        moves: bool | None = None,
        steep: bool | None = None,
        elementwise: bool | None = None,
    ) -> None:
        self.name = name or fn.__name__.rstrip("_")
        self.namespace = namespace
        self.fn = fn
        self.signature = Signature.of(fn)
        self.parameters = parameter_names(fn)
        self.backward = backward or camel(self.name) + "Backward0"
        self.saves = dict(saves or {})
        self.differentiable = differentiable
        self.view = view
        self.inplace = inplace
        self.method = method
        self.function = function
        self.numbers = numbers
        self.fits = dict(fits or {})
        self.sizes = sizes
        self.need = need
        self.check = check
        self.random = random
        # What PyTorch saves as a result is not computed again here either.
        self.residuals = residuals or any(name.startswith("result") for name in self.saves)
        self.aliases = aliases
        self.write = write
        self.overwrites = overwrites
        first = 1 if random else 0
        self.reuses = dict(reuses) if reuses else {0: first} if overwrites else {}
        self.inplace_check = inplace_check
        self.no_gradient = no_gradient
        self.constant_outputs = constant_outputs
        of_body = _OF_BODY.get(fn, (False, False, False))
        self.moves = of_body[0] if moves is None else moves
        self.steep = of_body[1] if steep is None else steep
        self.elementwise = of_body[2] if elementwise is None else elementwise
        self.weight = DRAW_WEIGHT if random else 1

    def __repr__(self) -> str:
        return f"<op {self.qualified}>"

    @property
    def qualified(self) -> str:
        return f"{self.namespace}.{self.name}" if self.namespace else self.name


class Fault:
    """A data-dependent error: computed beside the program's outputs, raised when next observed.

    An op's `check(*same arguments as fn)` returns a list of these.

    Attributes:
      bad: boolean array of any shape; the error is raised if any element is True.
      value: integer array broadcastable to `bad`, or None: the first bad element's value goes
        into the message.
      error: exception class.
      message: format string with `{value}`, PyTorch's words.
    """

    __slots__ = ("bad", "value", "error", "message")

    def __init__(self, bad: Any, error: type[Exception], message: str, value: Any = None) -> None:
        self.bad, self.error, self.message, self.value = bad, error, message, value


def camel(name: str) -> str:
    """Turn `"log_softmax"` into `"LogSoftmax"`, as PyTorch's code generator names nodes."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def op(**columns: Any) -> Callable[[Body], Body]:
    """Enter a JAX function into the table and return it unchanged; a decorator.

    A body reads like this (the name is taken, so the example only defines it)::

        @op(saves={"self": "other", "other": "self"}, inplace=True, numbers=("other",))
        def mul(input, other):
            '''Multiply, with PyTorch's type promotion.'''
            a, b = promote(input, other)
            return a * b

    Args:
      columns: the fields of `Op` that differ from their defaults.

    Returns:
      The decorator.

    Raises:
      ValueError: the table has an op of this name.
    """

    def enter(fn: Callable[..., Any]) -> Callable[..., Any]:
        entry = Op(fn, **columns)
        if entry.qualified in TABLE:
            raise ValueError(f"op `{entry.qualified}` is in the table already")
        TABLE[entry.qualified] = entry
        _OF_BODY[fn] = (entry.moves, entry.steep, entry.elementwise)
        for alias in entry.aliases:
            TABLE[f"{entry.namespace}.{alias}" if entry.namespace else alias] = entry
        return fn

    return enter


def ops_with(**columns: Any) -> Decorator:
    """Return the decorator `op` with the columns that all ops of a family have.

    Example::

        op = ops_with(elementwise=True)
    """
    return functools.partial(op, **columns)
