"""Settings of `torch._dynamo`: they are remembered, and nothing reads them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

verbose = suppress_errors = disable = dynamic_shapes = False
assume_static_by_default = automatic_dynamic_shapes = optimize_ddp = True
cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = accumulated_recompile_limit = 256
capture_scalar_outputs = capture_dynamic_output_shape_ops = compiled_autograd = False
allow_unspec_int_on_nn_module = force_parameter_static_shapes = False
inline_inbuilt_nn_modules = guard_nn_modules = specialize_float = error_on_recompile = False
force_nn_module_property_static_shapes = capture_func_transforms = trace_numpy = True
log_level = None


@contextlib.contextmanager
def patch(name: Any = None, value: Any = None, **changes: Any) -> Iterator[None]:
    """Set variables of this module within a block: `patch("name", value)` or `patch(name=value)`.

    Args:
      name: a variable's name, or a dict of names and values.
      value: the variable's value.
      changes: names and values.
    """
    given = dict(name) if isinstance(name, dict) else {} if name is None else {name: value}
    given |= changes
    before = {key: globals()[key] for key in given if key in globals()}
    globals().update(given)
    try:
        yield
    finally:
        for key in given:
            del globals()[key]
        globals().update(before)
