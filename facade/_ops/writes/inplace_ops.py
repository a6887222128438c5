"""The in-place variants of ops."""

from __future__ import annotations

from functools import cache
from typing import Any

from leafax.functional.program.dtypes import cast, category, cpp_name
from leafax.functional.program.op import TABLE, Op

from ..._host.plans import elementwise_writes
from ..._rules.node_names import COMPARISONS
from .check_dtype import check_cast

# Where the in-place form has a derivative of its own.
_NODES = {
    f"{name}Backward0": f"{name}Backward1"
    for name in (
        "ConjPhysical",
        "Threshold",
        "LeakyRelu",
        "Elu",
        "Celu",
        "RreluWithNoise",
        "Polygamma",
    )
}


# In place these save what they made, and not what they were given.
_OF_RESULT = frozenset({"leaky_relu", "elu", "selu", "celu", "rrelu"})


# These have no kernel for some of the dtypes that their operands may promote to.
_CAST_FIRST = frozenset({
    "atan2", "hypot", "nextafter", "fmod", "remainder", "floor_divide", "copysign", "gcd", "lcm",
    "xlogy",
    "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift",
})  # fmt: skip


# These have none, and yet autograd asks their operands for their history.
_BITS = frozenset({"bitwise_and", "bitwise_or", "bitwise_xor"})


@cache
def inplace_of(op: Op) -> Op:
    """Return the in-place variant of an op: the result takes the first input's shape and dtype."""

    def fn(*args: Any, **kwargs: Any) -> Any:
        if op.inplace_check is not None:
            op.inplace_check(*args, **kwargs)
        try:
            out = op.fn(*args, **kwargs)
        except (NotImplementedError, TypeError):
            if op.name in _CAST_FIRST:  # PyTorch looks at the target before it picks a kernel
                check_cast(TABLE["add"].fn(*args[:2]).dtype, args[0].dtype, op.name)
            raise
        self = args[1] if op.random else args[0]
        if op.name in ("cumsum", "cumprod"):
            asked = kwargs.get("dtype", args[2] if len(args) > 2 else None)
            if asked is not None and asked != self.dtype:
                raise RuntimeError(
                    f"Bad in-place call: input tensor dtype {cpp_name(self.dtype)} and output "
                    f"tensor dtype {cpp_name(asked)} should match"
                )
        if op.name in ("cumsum", "cumprod") and self.dtype == bool:
            if not self.ndim or not self.size:  # which PyTorch has no kernel for
                return self
            raise NotImplementedError(f"\"{op.name}_out_cpu\" not implemented for 'Bool'")
        if op.name == "abs" and category(self.dtype) > category(out.dtype):
            raise RuntimeError("In-place abs is not supported for complex tensors.")
        if out.shape != self.shape:
            raise RuntimeError(
                f"output with shape {list(self.shape)} doesn't match the broadcast shape "
                f"{list(out.shape)}"
            )
        check_cast(out.dtype, self.dtype, op.name)
        return cast(out, self.dtype)

    fn.__signature__ = op.signature  # type: ignore[attr-defined]
    made = Op(
        fn, name=op.name, namespace=op.namespace, backward=_NODES.get(op.backward, op.backward),
        saves={"result": "*"} if op.name in _OF_RESULT else op.saves,
        differentiable=op.differentiable or op.name in COMPARISONS, numbers=op.numbers,
        fits=op.fits, need=op.need, check=op.check,
        random=op.random, residuals=op.residuals, overwrites=True, no_gradient=op.no_gradient,
    )  # fmt: skip
    if op.elementwise:
        elementwise_writes.add(made)
    return made
