"""PyTorch's `torch.library`: ops of a program's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._library import operators as _operators
from ._library.custom_op import OPDEFS as _OPDEFS
from ._library.custom_op import CustomOpDef as CustomOpDef
from ._library.custom_op import custom_op as custom_op
from ._library.infer_schema import infer_schema as infer_schema
from ._library.libraries import Library as Library
from ._library.libraries import _scoped_library as _scoped_library
from ._library.libraries import fallthrough_kernel as fallthrough_kernel
from ._library.operators import key_of_device as _key_of_device
from ._ops.calls.aten_names import OpOverload as _OpOverload

__all__ = [
    "Library", "custom_op", "define", "fallthrough_kernel", "get_ctx", "get_kernel", "impl",
    "impl_abstract", "infer_schema", "opcheck", "register_autocast", "register_autograd",
    "register_fake", "register_kernel", "register_torch_dispatch", "register_vmap", "triton_op",
    "wrap_triton",
]  # fmt: skip


def _qualname(op: Any) -> str:
    if isinstance(op, str):
        return op
    if isinstance(op, CustomOpDef):
        return op._qualname
    if isinstance(op, _OpOverload):
        return str(op).replace(".", "::", 1)
    raise ValueError(f"Got unexpected type for `op`: {type(op)}; it must be a string or an op")


def _split(qualname: str) -> tuple[str, str]:
    parts = qualname.split("::")
    if len(parts) != 2:
        raise ValueError(
            'Expected `qualname` to be of the form "namespace::name", but got '
            f"{qualname}. The qualname passed to the torch.library APIs must consist of a "
            "namespace and a name, e.g. aten::sin"
        )
    return parts[0], parts[1]


def define(qualname: Any, schema: str, *args: Any, lib: Any = None, tags: Any = ()) -> Any:
    """Define an op, "mylib::foo", by its schema, "(Tensor x) -> Tensor".

    With a `Library` first it is a decorator: `define(lib, "foo(Tensor x) -> Tensor")`.
    """
    if isinstance(qualname, Library):
        name = qualname.define(schema, *args)

        def wrap(f: Callable[..., Any]) -> Callable[..., Any]:
            qualname.impl(name, f)
            return f

        return wrap
    if not isinstance(qualname, str):
        raise ValueError(
            "define(qualname, schema): expected qualname to be instance of str, got "
            f"{type(qualname)}"
        )
    space, name = _split(qualname)
    (lib or Library(space, "FRAGMENT")).define(name + schema, alias_analysis="", tags=tags)
    return None


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Any = None) -> Any:
    """Implement an op for types of devices or dispatch keys; a decorator if `func` is left out."""
    if isinstance(qualname, Library):
        library, name, key = qualname, types, func or ""

        def wrap(f: Callable[..., Any]) -> Callable[..., Any]:
            library.impl(name, f, key)
            return f

        return wrap
    space, name = _split(qualname)
    keys = [_key(kind) for kind in ([types] if isinstance(types, str) else types)]

    def register(func: Callable[..., Any]) -> None:
        library = lib or Library(space, "FRAGMENT")
        for key in keys:
            library.impl(name, func, key)

    return register if func is None else register(func)


def _key(kind: str) -> str:
    if kind == "default":
        return _operators.EXPLICIT
    return _key_of_device(kind) if kind.islower() else kind


def register_kernel(op: Any, device_types: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """Register an implementation for types of devices; a decorator if `func` is left out."""
    name = _qualname(op)
    if name in _OPDEFS:
        return _OPDEFS[name].register_kernel(device_types, func)

    def register(func: Callable[..., Any]) -> Callable[..., Any]:
        impl(name, "default" if device_types is None else device_types, func, lib=lib)
        return func

    return register if func is None else register(func)


def register_fake(
    op: Any, func: Any = None, /, *, lib: Any = None, _stacklevel: int = 1,
    allow_override: bool = False,
) -> Any:  # fmt: skip
    """Accept what tells results' shapes; a decorator if `func` is left out.

    Nothing calls it, since ops are recorded here. The op may be one that an extension defines that
    is not there.
    """
    _qualname(op)  # it refuses what is no op
    return (lambda func: func) if func is None else func


impl_abstract = register_fake


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Any = None, lib: Any = None
) -> None:
    """Register an op's gradient.

    Args:
      op: its name or itself; it may be one that an extension defines that is not there.
      backward: `backward(ctx, *grads)` returns a gradient for each argument.
      setup_context: `setup_context(ctx, inputs, output)` saves what that needs.
    """
    name = _qualname(op)
    if name in _OPDEFS:
        _OPDEFS[name].register_autograd(backward, setup_context=setup_context)
        return
    operator = _operators.find(name)
    if operator is not None:
        operator.set_gradient(backward, setup_context, shown=operator.shown)


def register_vmap(op: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """Register `func(info, in_dims, *args)`, called in `vmap` with whole batches."""
    name = _qualname(op)

    def register(func: Callable[..., Any]) -> Callable[..., Any]:
        operator = _operators.find(name)
        if operator is not None:
            operator.vmap = func
        return func

    return register if func is None else register(func)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """Have autocast give an op's floating point tensors a dtype."""
    operator = _operators.find(_qualname(op))
    if operator is not None:
        operator.casts[device_type] = cast_inputs


def register_torch_dispatch(
    op: Any, torch_dispatch_class: Any, func: Any = None, /, *, lib: Any = None
) -> Any:
    """Accept a rule for `__torch_dispatch__`, which nothing here calls."""
    return (lambda func: func) if func is None else func


def get_ctx() -> Any:
    """Refuse: implementations for shapes alone are not called."""
    raise RuntimeError(
        "get_ctx() can only be called inside a function registered with register_fake, which "
        "leafax does not call"
    )


def get_kernel(op: Any, dispatch_key: str) -> Callable[..., Any]:
    """Return the implementation of an op for a dispatch key."""
    operator = _operators.find(_qualname(op))
    if operator is None or dispatch_key not in operator.kernels:
        raise RuntimeError(f"{_qualname(op)} has no implementation for {dispatch_key}")
    return operator.kernels[dispatch_key]


def triton_op(name: str, fn: Any = None, /, *, mutates_args: Any, schema: Any = None) -> Any:
    """Make a function an op, as `custom_op` does; its Triton kernels do not run here."""
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel: Any, /) -> Any:
    """Return the kernel: it does not run here."""
    return triton_kernel


def opcheck(op: Any, args: Any, kwargs: Any = None, **options: Any) -> dict[str, str]:
    """Refuse: what it checks in PyTorch is the dispatcher."""
    raise NotImplementedError("opcheck checks registrations with PyTorch's dispatcher")
