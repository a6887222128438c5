"""`NestedIOFunction`: functions with lists of tensors, from before PyTorch had `apply`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .._core.handle import Handle
from ._function import Function

_UNKNOWN = (
    "Auto nesting doesn't know how to process an input object of type {}. Accepted types: {}, or "
    "lists/tuples of them"
)


def _unknown(x: Any, accepted: str) -> ValueError:
    name, module = type(x).__qualname__, type(x).__module__
    told = name if module in ("builtins", "", None) else f"{module}.{name}"
    return ValueError(_UNKNOWN.format(told, accepted))


def _tensors(x: Any, or_none: bool = False) -> Iterator[Any]:
    """Yield the tensors of a structure in order, with None if that counts as one."""
    if isinstance(x, Handle) or (x is None and or_none):
        yield x
    elif isinstance(x, (list, tuple)):
        for part in x:
            yield from _tensors(part, or_none)
    elif isinstance(x, dict):
        for part in x.values():
            yield from _tensors(part, or_none)
    elif x is not None:
        raise _unknown(x, "Tensors or None" if or_none else "Tensors")


def _mapped(x: Any, fn: Callable[[Any], Any]) -> Any:
    """Return the structure with `fn` of each tensor."""
    if isinstance(x, Handle):
        return fn(x)
    if x is None:
        return None
    if isinstance(x, (list, tuple)):
        parts = [_mapped(part, fn) for part in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    if isinstance(x, dict):
        return {key: _mapped(part, fn) for key, part in x.items()}
    raise _unknown(x, "Tensors")


def _nested(flat: Any, like: Any) -> Any:
    """Nest tensors in a row as `like` is nested."""

    def take(rest: Any, proto: Any) -> tuple[Any, Any]:
        if not isinstance(proto, (list, tuple)):
            return rest[0], rest[1:]
        found: list[Any] = []
        for part in proto:
            made = None
            if part is not None:
                made, rest = take(rest, part)
            found.append(made)
        return type(proto)(found), rest

    return take(flat, like)[0]


class NestedIOFunction(Function):
    """Keep the name of Functions of nested lists and tuples of tensors, from before `apply`.

    Kept for its name: PyTorch has no engine for such functions any more, so calling one raises
    `AttributeError` there and here. Use `Function`.

    Raises:
      AttributeError: when it is called.
    """

    # Of `Function` these are static; an old function is an object with a state.

    def _do_forward(self, *input: Any) -> Any:
        self._nested_input = input
        flat = tuple(_tensors(input))
        return _nested(super()._do_forward(*flat), self._nested_output)  # type: ignore[misc]

    def _do_backward(self, gradients: Any, retain_variables: bool) -> Any:
        self.retain_variables = retain_variables
        result = super()._do_backward(gradients, retain_variables)  # type: ignore[misc]
        if not retain_variables:
            del self._nested_output
            del self._to_save_nested
        return result

    __call__ = _do_forward

    def forward(self, *args: Any) -> Any:  # type: ignore[override]
        """Return in a row what `forward_extended` does for the inputs without their history."""
        result = self.forward_extended(*_mapped(self._nested_input, lambda t: t.data))  # type: ignore[func-returns-value]
        del self._nested_input
        self._nested_output = result
        return tuple(_tensors(result))

    def backward(self, *gradients: Any) -> Any:  # type: ignore[override]
        """Return in a row what `backward_extended` does."""
        nested = _nested(gradients, self._nested_output)
        return tuple(_tensors(self.backward_extended(*nested), or_none=True))  # type: ignore[func-returns-value]

    def save_for_backward(self, *args: Any) -> None:
        """Keep tensors, nested as they are."""
        self.to_save = tuple(_tensors(args))
        self._to_save_nested = args

    @property
    def saved_tensors(self) -> Any:
        """Return the saved tensors, nested as they were."""
        return _nested(super().__getattr__("saved_tensors"), self._to_save_nested)

    def mark_dirty(self, *args: Any, **kwargs: Any) -> None:
        """Name the inputs that forward writes to."""
        self.dirty_tensors = tuple(_tensors((args, kwargs)))

    def mark_non_differentiable(self, *args: Any, **kwargs: Any) -> None:
        """Name the outputs that have no gradient."""
        self.non_differentiable = tuple(_tensors((args, kwargs)))

    def forward_extended(self, *input: Any) -> None:
        """Compute the nested outputs; override it."""
        raise NotImplementedError

    def backward_extended(self, *grad_output: Any) -> None:
        """Compute the nested gradients; override it."""
        raise NotImplementedError


NestedIOFunction.__module__ = "leafax.autograd.function"
