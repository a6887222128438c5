"""`torch.library.custom_op`: a function as an op that is opaque to autograd."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .._core.handle import Handle
from .._core.tree.trees import tree_leaves
from .._ops.calls.aten_names import OpOverload, namespace
from .infer_schema import infer_schema
from .operators import EXPLICIT, OPERATORS, define, key_of_device
from .schema import parse_schema
from .tags import Tag, list_tags

OPDEFS: dict[str, CustomOpDef] = {}  # by "namespace::name"
_ALIASES = (
    "The output of this custom operator (1) must not also be an input to this custom operator and "
    "(2) may not alias any inputs to this custom operator or other returns. The most common way to "
    "trigger this error is if we have y = custom_op(x) and y and x are the same Tensor. Please "
    "instead return a clone of the offending output tensor(s) (e.g. return x.clone()) or refactor "
    "the custom operator to not return y."
)


def custom_op(
    name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None, schema: str | None = None, tags: Any = None,
) -> Any:  # fmt: skip
    """Make a function an op, `torch.ops.mylib.foo`; a decorator if `fn` is left out.

    Args:
      name: "mylib::foo".
      fn: has annotations, or else there is a schema.
      mutates_args: the names of the arguments that it writes to, or "unknown".
      device_types: where it works; None for all devices.
      schema: "(Tensor x, int y) -> Tensor", inferred from the annotations if it is None.
      tags: `Tag.inplace` and `Tag.out` say that it returns what it writes to.

    Returns:
      a `CustomOpDef`, which is called like the function.

    >>> import leafax as torch
    >>> @torch.library.custom_op("readme::double", mutates_args=())
    ... def double(x: torch.Tensor) -> torch.Tensor:
    ...     return x * 2
    >>> double.register_autograd(lambda ctx, grad: grad * 2)
    >>> x = torch.ones(2, requires_grad=True)
    >>> torch.ops.readme.double(x).sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """

    def make(fn: Callable[..., Any]) -> CustomOpDef:
        used = list_tags(tags)
        text = infer_schema(fn, mutates_args=mutates_args, tags=used) if schema is None else schema
        space, opname = name.split("::")
        made = CustomOpDef(space, opname, text, fn, used)
        if schema is not None:
            written = {
                a.name for a in made._operator.schema.arguments if a.alias_info and a.alias_info[1]
            }
            if written != set(mutates_args):
                raise ValueError(
                    f"Attempted to create a custom op with `mutates_args={mutates_args}` and "
                    f"`schema={schema}. The schema suggests that the op mutates {written}which is "
                    "different from what was provided to us in `mutates_args`. Please make these "
                    "consistent."
                )
        made.register_kernel(device_types)(fn)
        return made

    return make if fn is None else make(fn)


class CustomOpDef:
    """An op that `custom_op` made of a function: called like it, with its gradient registered."""

    def __init__(
        self, namespace: str, name: str, schema: str, fn: Callable[..., Any], tags: Any = None
    ) -> None:
        self._namespace, self._name, self._schema, self._init_fn = namespace, name, schema, fn
        self._tags = list_tags(tags)
        parsed = parse_schema(f"{self._qualname}{schema}")
        if Tag["out"] not in self._tags and any(
            a.kwarg_only and a.type.startswith("Tensor") for a in parsed.arguments
        ):
            raise NotImplementedError(
                "custom_op with kwarg-only Tensor args. Please make your tensors not kwarg-only. "
                f"Got: {name}{schema}"
            )
        OPERATORS.pop(parsed.whole_name, None)  # a definition replaces an earlier one
        self._operator = define(parsed, opaque=True)
        self._operator.check_result = self._check_result
        OPDEFS[self._qualname] = self

    @property
    def _qualname(self) -> str:
        return f"{self._namespace}::{self._name}"

    @property
    def _opoverload(self) -> OpOverload:
        return getattr(namespace(self._namespace), self._name).default  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def _check_result(self, made: Any, args: Any, kwargs: Any) -> None:
        where = f"{self._name} (with implementation in {inspect.getmodule(self._init_fn)}): "
        given = [x for x in tree_leaves([*args, *kwargs.values()]) if isinstance(x, Handle)]
        if Tag["inplace"] in self._tags:
            if made is not args[0]:
                raise RuntimeError(
                    f"{where}An operator tagged with torch.Tag.inplace must return its first "
                    "argument."
                )
        elif Tag["out"] in self._tags:
            outs = made if isinstance(made, tuple) else (made,)
            if not all(any(x is y for y in kwargs.values()) for x in outs):
                raise RuntimeError(
                    f"{where}An operator tagged with torch.Tag.out must return its mutable "
                    "keyword-only arguments."
                )
        else:
            for x in tree_leaves(made):
                if isinstance(x, Handle) and any(x is y or x._base is y for y in given):
                    raise RuntimeError(where + _ALIASES)

    def register_kernel(
        self,
        device_types: str | Sequence[str] | None,
        fn: Callable[..., Any] | None = None,
        /,
    ) -> Any:
        """Register an implementation for types of devices; a decorator if `fn` is left out."""

        def register(fn: Callable[..., Any]) -> Callable[..., Any]:
            if device_types is None:
                self._operator.kernels[EXPLICIT] = fn
            else:
                kinds = [device_types] if isinstance(device_types, str) else device_types
                self._operator.kernels.update({key_of_device(kind): fn for kind in kinds})
            return fn

        return register if fn is None else register(fn)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Accept what tells results' shapes, which nothing calls, since ops are recorded here."""
        for name in ("inplace", "out"):
            if Tag[name] in self._tags:
                warnings.warn(
                    f"The fake registration for {self} is unnecessary. Custom ops tagged with "
                    f"torch.Tag.{name} already get an autogenerated fake kernel. The provided fake "
                    "impl will be used instead.",
                    stacklevel=2,
                )
        return fn

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Register the op's gradient.

        Args:
          backward: `backward(ctx, *grads)` returns a gradient for each argument.
          setup_context: `setup_context(ctx, inputs, output)` saves what that needs; it gets
            `keyword_only_inputs` too where the op has such.

        Raises:
          RuntimeError: the op writes to an argument.
        """
        if Tag["out"] in self._tags:
            raise RuntimeError(
                "Cannot register autograd formula for operator tagged with torch.Tag.out: "
                f"{self}. Out variants do not support autograd."
            )
        self._operator.set_gradient(backward, setup_context, shown=self)

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Register `func(info, in_dims, *args)`, called in `vmap` with whole batches."""

        def register(func: Callable[..., Any]) -> Callable[..., Any]:
            self._operator.vmap = func
            return func

        return register if func is None else register(func)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """Have autocast give the op's floating point tensors a dtype."""
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self._operator.casts[device_type] = cast_inputs

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Any = None, /) -> Any:
        """Accept a rule for `__torch_dispatch__`, which nothing here calls."""
        return (lambda fn: fn) if fn is None else fn

    def register_effect(self, effect: Any) -> None:
        """Accept that the op has an effect: ops run in the order in which they were called."""

    @contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """Turn the implementation for a type of device off, or on again, for a block."""
        before, key = self._operator.disabled, {key_of_device(device_type)}
        self._operator.disabled = before - key if enabled else before | key
        try:
            yield
        finally:
            self._operator.disabled = before
