"""PyTorch's files and state dicts, without PyTorch.

`load_checkpoint` reads what `torch.save` wrote: it runs no code of the file and imports no torch.
`convert` and `load_into` put a state dict into Flax variables and models.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import ml_dtypes
import numpy as np

import leafax
from leafax.functional.execution.tracebacks import end_at_callers
from leafax.functional.program.paths import paths

from ._files.checkpoint import load_checkpoint as load_checkpoint
from ._files.from_torch import Names as Names
from ._files.from_torch import Report as Report
from ._files.from_torch import Row as Row
from ._files.from_torch import match as _match


def convert(
    state_dict: Mapping[str, Any], like: Any, *, names: Names = None, strict: bool = True
) -> tuple[Any, Report]:
    """Make Flax variables with the values of a PyTorch state dict.

    Args:
      state_dict: arrays by name: what `load_checkpoint`, `adapters.safetensors.read` or PyTorch's
        `state_dict()` give.
      like: linen variables, or an `nnx.State`; shapes (`jax.eval_shape`'s) are enough.
      names: from PyTorch's module names to Flax's paths: a mapping with stars,
        `{"encoder.layer.*.attention.self.query": "layer_*.query"}`, where what follows a match
        stays; or a function, None of which leaves a module out. Equal names need no mention. The
        rest is matched by shape, in order among modules of equal shapes.
      strict: raise if anything is missing or unused.

    Returns:
      `(variables, report)`: a tree like `like` with NumPy arrays. Without `strict`, what got
      nothing keeps what `like` has.

    Raises:
      ValueError: shapes that do not fit, names that are not there; with `strict`, what is missing
        or unused.

    >>> import numpy as np
    >>> like = {"params": {"head": {"kernel": np.zeros((3, 2))}}}
    >>> variables, report = convert({"head.weight": np.ones((2, 3))}, like)
    >>> variables["params"]["head"]["kernel"].shape, report.missing
    ((3, 2), [])
    """
    leaves, treedef = jax.tree.flatten(like)
    short = short_names(like)
    shapes = {name: tuple(x.shape) for name, x in zip(short, leaves, strict=True)}
    values, report = _match(arrays_of(state_dict), shapes, names, ())
    check(report, strict)
    new = [
        np.asarray(values[name], x.dtype) if name in values else x
        for name, x in zip(short, leaves, strict=True)
    ]
    return jax.tree.unflatten(treedef, new), report


def load_into(
    model: Any, state_dict: Mapping[str, Any], *, names: Names = None, strict: bool = True
) -> Report:
    """Put a PyTorch state dict into a model of `adapters.linen` or `adapters.nnx`.

    A model that was called before knows in what order it uses its modules, which is the order that
    modules of equal shapes are matched in.

    Args:
      model: of which the tensors take over the values.
      state_dict, names, strict: as in `convert`.

    Returns:
      What went where; `missing` are names of the model's, `unused` those of PyTorch's.

    Raises:
      ValueError: as in `convert`; then nothing was loaded.

    >>> import numpy as np
    >>> from flax import nnx
    >>> from leafax.adapters.nnx import Model
    >>> model = Model(nnx.Linear(3, 2, use_bias=False, rngs=nnx.Rngs(0)))
    >>> _ = load_into(model, {"weight": np.ones((2, 3), np.float32)})
    >>> model.kernel.sum().item()
    6.0
    """
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    shapes = {
        name: tuple(t.shape) for name, t in tensors.items() if not name.endswith((".key", ".count"))
    }
    try:
        order = model._order()
    except RuntimeError:
        order = []
    values, report = _match(arrays_of(state_dict), shapes, names, order)
    check(report, strict)
    model.load_state_dict(
        {name: leafax.as_tensor(value) for name, value in values.items()}, strict=False
    )
    return report


def short_names(tree: Any) -> list[str]:
    """Return the paths of a Flax tree, without the collections of linen's."""
    collections = isinstance(tree, Mapping) and "params" in tree
    return [name.partition(".")[2] if collections else name for name in paths(tree)]


def arrays_of(state_dict: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a state dict as NumPy arrays."""
    return {name: _array(value) for name, value in state_dict.items()}


def _array(value: Any) -> Any:
    """Copy a value: a tensor of PyTorch's would change as its module trains on."""
    if not hasattr(value, "detach"):
        return np.asarray(value)
    value = value.detach().cpu()
    if str(value.dtype) == "torch.bfloat16":  # NumPy has no such type of its own
        return value.float().numpy().astype(ml_dtypes.bfloat16)
    return value.numpy().copy()


def check(report: Report, strict: bool) -> None:
    """Raise for a report with `strict` that has something missing or unused."""
    if strict and (report.missing or report.unused):
        raise ValueError(
            f"the state dict does not fit the model: {report}\nGive `names` for what was not found,"
            f" or `strict=False`"
        )


end_at_callers(__name__)
