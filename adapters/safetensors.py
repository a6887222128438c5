"""Parameters by name in safetensors files: whole, trainable only, or an adapter.

A name is a tensor's dotted path, so a file does not depend on the order of a tree, and part of a
file can go to part of a model.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import safetensors.numpy
from safetensors import safe_open

import leafax
from leafax.functional.execution.tracebacks import end_at_callers

from ._files.atomic import write_atomically
from ._models.select import choose
from ._modules.module import model_of

Path = str | os.PathLike[str]
_PARTIAL = "leafax.only"


class Report(NamedTuple):
    """The names that `load` took over, left alone, or found no place for.

    Attributes:
      loaded: names of the model's tensors that have the file's values now.
      missing: names of the model's that the file lacks.
      unexpected: names of the file's that the model lacks.
      mismatched: names with another shape, `(name, in the file, in the model)`.
      skipped: names of the file outside the prefix.
    """

    loaded: list[str]
    missing: list[str]
    unexpected: list[str]
    mismatched: list[tuple[str, tuple[int, ...], tuple[int, ...]]]
    skipped: list[str]

    def __str__(self) -> str:
        lines = [f"{len(self.loaded)} loaded"]
        for kind in ("missing", "unexpected", "skipped"):
            names = getattr(self, kind)
            if names:
                more = f" and {len(names) - 8} more" if len(names) > 8 else ""
                lines.append(f"{len(names)} {kind}: {', '.join(names[:8])}{more}")
        lines += [f"{n} is {list(a)} in the file, {list(b)} here" for n, a, b in self.mismatched]
        return "\n".join(lines)


def save(
    path: Path, model: Any, *, only: Any = None, metadata: Mapping[str, str] | None = None
) -> None:
    """Write a model's (or adapter's) tensors by name, atomically.

    Args:
      path: the file; an old one stays whole until the new one is.
      model: anything with a `state_dict()` of tensors: a model, a part of one, a
        `leafax.nn.Module`, a `Lora`.
      only: None for all tensors, `"trainable"` for the parameters that train now, or patterns as
        `freeze` takes them.
      metadata: strings to keep in the file.

    Raises:
      ValueError: a pattern that matches nothing, or nothing trains.

    >>> import tempfile
    >>> from leafax import nn
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/layer.safetensors", nn.Linear(3, 2), only="bias")
    ...     {name: array.shape for name, array in read(f"{folder}/layer.safetensors").items()}
    {'bias': (2,)}
    """
    tensors = model.state_dict()
    chosen = set(tensors) if only is None else _chosen(model, tensors, only)
    # (`ascontiguousarray` makes vectors of 0-d arrays.)
    arrays = {n: np.asarray(t.jax(), order="C") for n, t in tensors.items() if n in chosen}
    kept = dict(metadata or {})
    if only is not None:
        kept[_PARTIAL] = "trainable" if only == "trainable" else "some"
    write_atomically(path, lambda p: safetensors.numpy.save_file(arrays, p, metadata=kept or None))


def _chosen(model: Any, tensors: dict[str, Any], only: Any) -> set[str]:
    if only != "trainable":
        what = only if isinstance(only, tuple) else (only,)
        return choose(tensors, what, model_of(model)._classes)
    chosen = {name for name, p in model.named_parameters() if p.requires_grad}
    if not chosen:
        raise ValueError("nothing of the model trains, so there is nothing to save")
    return chosen


def read(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Read all arrays of a file by name.

    Args:
      path: a file that `save` or another library wrote.

    Returns:
      NumPy arrays, of the shapes and dtypes that the file has.

    >>> import tempfile
    >>> from leafax import nn
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/layer.safetensors", nn.Linear(3, 2))
    ...     sorted(read(f"{folder}/layer.safetensors"))
    ['bias', 'weight']
    """
    return safetensors.numpy.load_file(path)


def load(
    path: Path, model: Any, *, strict: bool = True, prefix: str = "", into: str = "",
    rename: Callable[[str], str | None] | None = None,
) -> Report:  # fmt: skip
    """Take over a file's tensors by name.

    Args:
      path: the file.
      model: what `save` takes; frozen tensors are loaded like all others and stay frozen.
      strict: raise if anything does not fit. A file that was saved with `only` may lack names.
      prefix: take only names that begin so, without it: `"encoder."`.
      into: put before the names: the part of the model that they go to, `"backbone."`.
      rename: from a name in the file (before the prefix is taken off) to the one to look for; None
        leaves it out.

    Returns:
      What was loaded and what was not.

    Raises:
      RuntimeError: with `strict`, all that does not fit; then nothing was loaded. Shapes that
        differ raise in any case.

    >>> import tempfile
    >>> from leafax import nn
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/layer.safetensors", nn.Linear(3, 2))
    ...     load(f"{folder}/layer.safetensors", nn.Linear(3, 2)).loaded
    ['bias', 'weight']
    """
    with safe_open(os.fspath(path), framework="numpy") as file:
        partial = _PARTIAL in (file.metadata() or {})
    arrays = read(path)
    mine = model.state_dict()
    given: dict[str, Any] = {}
    report = Report([], [], [], [], [])
    for name, array in arrays.items():
        new: str | None = name if rename is None else rename(name)
        if new is None or not new.startswith(prefix):
            report.skipped.append(name)
            continue
        new = into + new.removeprefix(prefix)
        if new not in mine:
            report.unexpected.append(new)
        elif tuple(mine[new].shape) != array.shape:
            report.mismatched.append((new, array.shape, tuple(mine[new].shape)))
        else:
            given[new] = array
    wanted = [name for name in mine if name.startswith(into)]
    report.missing.extend(n for n in wanted if n not in given and n not in _names(report))
    wrong = report.mismatched or (strict and (report.unexpected or report.missing and not partial))
    if wrong:
        raise RuntimeError(f"`{os.fspath(path)}` does not fit the model: {report}")
    report.loaded.extend(given)
    tensors = {name: leafax.as_tensor(array) for name, array in given.items()}
    if hasattr(model, "named_buffers"):
        model.load_state_dict(tensors, strict=False)
    else:
        model.load_state_dict(tensors)
    return report


def _names(report: Report) -> set[str]:
    return {name for name, *_ in report.mismatched}


end_at_callers(__name__)
