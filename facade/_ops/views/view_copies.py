"""View ops that copy: `view_copy`, `split_copy` and their like, with `out=`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafax.functional.program.op import TABLE, Op

from ..._core.dtypes import dtype
from ..._core.grad_modes import no_grad
from ..calls.functions import call
from ..writes.check_kind import check_kind, check_parts
from ..writes.write_out import check_out, write_out


def _copying(name: str) -> Callable[..., Any]:
    view = TABLE[name]
    node = "NarrowCopyBackward0" if name == "narrow" else view.backward + "_copy"
    op = Op(view.fn, name=name + "_copy", backward=node)

    def copy(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        if name == "split" and args[1:] and not isinstance(args[1], int):
            kind = type(args[1]).__name__
            raise TypeError(
                f"split_copy(): argument 'split_size' (position 2) must be int, not {kind}"
            )
        if name == "as_strided" and args and (args[0]._lens or args[0]._v.strides is not None):
            viewed = args[0].as_strided(*args[1:], **kwargs)  # of the storage, not of the values
            return viewed.clone() if out is None else write_out(op, viewed, out)
        if name == "view" and _takes_dtype(args, kwargs):
            viewed = args[0].view(*args[1:], **kwargs)
            return viewed.clone() if out is None else write_out(op, viewed, out)
        if out is None:
            return call(op, args, kwargs)
        if name in _LISTS:
            return _write_list(op, args, kwargs, out)
        check_kind(op, out, (args, kwargs))
        check_out(op, out, (args, kwargs))
        return write_out(op, call(op, args, kwargs), out)

    copy.__name__ = copy.__qualname__ = name + "_copy"
    copy.__doc__ = f"`{name}` that copies instead of viewing."
    return copy


def _takes_dtype(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Tell whether `view` is asked for the same memory as another dtype."""
    asked = args[1] if len(args) == 2 else kwargs.get("dtype")
    return isinstance(asked, (dtype, type))


# PyTorch's names for what writes several views' copies into a list of tensors.
_LISTS = {
    "split": "split_copy_Tensor_out()", "split_with_sizes": "split_with_sizes_copy_out",
    "unbind": "unbind_copy_int_out",
}  # fmt: skip


def _write_list(op: Op, args: Any, kwargs: Any, out: Any) -> None:
    """Write copies of several views into a list; return nothing, as PyTorch does."""
    check_parts(out, None, len(op.parameters), op.name)
    if op.name == "unbind_copy":
        for written in out:
            check_out(op, written, ())
    with no_grad():
        made = call(op, args, kwargs)
        if len(made) != len(out):
            raise RuntimeError(
                f"{_LISTS[op.name.removesuffix('_copy')]} expected an out= argument of size "
                f"{len(made)}, got size {len(out)}"
            )
        for part, written in zip(made, out, strict=True):
            if op.name == "split_copy":
                written.copy_(part)
            else:
                write_out(op, part, written)


COPIES = {
    name + "_copy": _copying(name)
    for name in (
        "expand", "diagonal", "alias", "as_strided", "narrow", "view", "permute", "unbind",
        "unfold", "squeeze", "unsqueeze", "transpose", "t", "split_with_sizes", "select", "slice",
        "split", "view_as_real", "view_as_complex",
    )
    if name in TABLE
}  # fmt: skip
