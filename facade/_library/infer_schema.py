"""Schemas of functions by their annotations."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from types import GenericAlias
from typing import Any

from .._core.dtypes import device, dtype
from .._tensor.tensor import Tensor
from ..types import Number
from .tags import Tag, list_tags


def _sequences(kind: Any) -> tuple[Any, ...]:
    return typing.Sequence[kind], typing.List[kind], GenericAlias(Sequence, (kind,)), list[kind]  # noqa: UP006, UP035


@cache
def _parameter_types() -> dict[Any, str]:
    """Return the schema's name of each type that a parameter may have."""
    found: dict[Any, str] = {}
    for kind, name, lists, lists_of_optional, optional_lists in (
        (Tensor, "Tensor", True, True, False),
        (int, "SymInt", True, False, True),
        (float, "float", True, False, True),
        (bool, "bool", True, False, True),
        (str, "str", False, False, False),
        (Number, "Scalar", True, False, False),
        (dtype, "ScalarType", False, False, False),
        (device, "Device", False, False, False),
    ):
        found |= {kind: name, typing.Optional[kind]: f"{name}?"}  # noqa: UP045
        if lists:
            found |= dict.fromkeys(_sequences(kind), f"{name}[]")
        if lists_of_optional:
            found |= dict.fromkeys(_sequences(typing.Optional[kind]), f"{name}?[]")  # noqa: UP045
        if optional_lists:
            found |= {typing.Optional[s]: f"{name}[]?" for s in _sequences(kind)}  # noqa: UP045
    return found


_RETURNS: dict[Any, str] = {
    Tensor: "Tensor", typing.List[Tensor]: "Tensor[]", list[Tensor]: "Tensor[]",  # noqa: UP006
    int: "SymInt", float: "float", bool: "bool", Number: "Scalar",
}  # fmt: skip


def infer_schema(
    prototype_function: Callable[..., Any], /, *, mutates_args: str | Iterable[str],
    op_name: str | None = None, tags: Any = (),
) -> str:  # fmt: skip
    """Write the schema of a function with annotations.

    Args:
      mutates_args: the names of the arguments that it writes to, or "unknown".
      op_name: the op's name, which else is left out.
      tags: `Tag.inplace` and `Tag.out` say that it returns what it writes to.

    Raises:
      ValueError: an annotation is missing or has no name in schemas.

    >>> import leafax as torch
    >>> def foo(x: torch.Tensor, y: int = 3) -> torch.Tensor: ...
    >>> torch.library.infer_schema(foo, op_name="foo", mutates_args=())
    'foo(Tensor x, SymInt y=3) -> Tensor'
    """
    return _Inference(prototype_function, mutates_args, list_tags(tags)).write(op_name)


class _Inference:
    """Facts of a function whose schema is being written."""

    def __init__(
        self, fn: Callable[..., Any], mutates: str | Iterable[str], tags: tuple[Tag, ...]
    ) -> None:
        self.fn, self.signature = fn, inspect.signature(fn)
        self.all_mutated = mutates == "unknown"
        if isinstance(mutates, str) and not self.all_mutated:
            raise ValueError(
                "mutates_args must either be a sequence of the names of the arguments that are "
                "mutated or the string 'unknown'. "
            )
        self.mutates = () if self.all_mutated else tuple(mutates)
        self.inplace, self.out = Tag["inplace"] in tags, Tag["out"] in tags
        self.outs: list[str] = []

    def fail(self, what: str) -> typing.NoReturn:
        raise ValueError(f"infer_schema(func): {what} Got func with signature {self.signature})")

    def resolve(self, annotation: Any) -> Any:
        if not isinstance(annotation, str):
            return annotation
        try:
            return eval(annotation, self.fn.__globals__)  # type: ignore[attr-defined]
        except NameError as e:
            self.fail(
                f"Unsupported type annotation {annotation}. It is not a type. ({e}). If you are "
                "using 'from __future__ import annotations', note that annotations are evaluated "
                "lazily as strings; make sure all types referenced in annotations are importable "
                "at module scope, not only inside a local function."
            )
        except Exception as e:
            self.fail(
                f"Unsupported type annotation {annotation}. It is not a type. "
                f"({type(e).__name__}: {e})"
            )

    def write(self, op_name: str | None) -> str:
        parts: list[str] = []
        for i, (name, p) in enumerate(self.signature.parameters.items()):
            if p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
                self.fail("We do not support positional-only args, varargs, or varkwargs.")
            if p.kind is p.KEYWORD_ONLY and "*" not in parts:
                parts.append("*")
            parts.append(self.parameter(i, name, p))
        unseen = set(self.mutates) - set(self.signature.parameters)
        if unseen:
            self.fail(
                f"{unseen} in mutates_args were not found in the custom op's signature. "
                "mutates_args should contain the names of all args that the custom op mutates, or "
                "just the string 'unknown' if you don't know."
            )
        return f"{op_name or ''}({', '.join(parts)}) -> {self.results()}"

    def parameter(self, place: int, name: str, p: inspect.Parameter) -> str:
        if p.annotation is p.empty:
            self.fail(f"Parameter {name} must have a type annotation.")
        kind = _parameter_types().get(_hashable(self.resolve(p.annotation)))
        if kind is None:
            self.fail(
                f"Parameter {name} has unsupported type {p.annotation}. The valid types are: "
                f"{_parameter_types().keys()}."
            )
        mutated = name in self.mutates or self.all_mutated and kind.startswith("Tensor")
        if mutated:
            if not kind.startswith("Tensor"):
                self.fail(
                    f"Parameter {name} is in mutable_args but only Tensors or collections of "
                    "Tensors can be mutated"
                )
            kind = f"Tensor(a{place}!){kind.removeprefix('Tensor')}"
            self.outs.append(f"Tensor(a{place}!)")
        if p.default is p.empty:
            return f"{kind} {name}"
        return f"{kind} {name}={self.default(name, p.default)}"

    def default(self, name: str, x: Any) -> str:
        if x is None or isinstance(x, (int, float, bool)):
            return str(x)
        if isinstance(x, (str, device)):
            return f'"{x}"'
        if isinstance(x, dtype):
            return str(x).removeprefix("torch.")
        self.fail(
            f"Parameter {name} has an unsupported default value type {type(x)}. Please file an "
            "issue on GitHub so we can prioritize this."
        )

    def results(self) -> str:
        annotation = self.resolve(self.signature.return_annotation)
        if self.inplace or self.out:
            return self.outs[0] if len(self.outs) == 1 else f"({', '.join(self.outs)})"
        if annotation is None:
            return "()"
        if annotation is inspect.Parameter.empty:
            self.fail("No return type annotation was provided. Please add one.")
        several = typing.get_origin(annotation) is tuple
        kinds = typing.get_args(annotation) if several else (annotation,)
        if any(_hashable(k) not in _RETURNS for k in kinds):
            self.fail(f"Return has unsupported type {annotation}. The valid types are: {_RETURNS}.")
        text = ", ".join(_RETURNS[k] for k in kinds)
        if not several:
            return text
        return f"(({text}))" if len(kinds) == 1 else f"({text})"


def _hashable(annotation: Any) -> Any:
    try:
        hash(annotation)
    except TypeError:
        return None
    return annotation
