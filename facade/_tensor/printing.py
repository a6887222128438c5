"""Texts of tensors, as PyTorch 2.13 prints them, from NumPy arrays.

All elements of a tensor share one format, chosen from the finite non-zero ones among those shown:
integers with a point (`1.`), fixed, or scientific notation. Complex tensors have two formats, for
the real and the imaginary parts.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class PrintOptions:
    """Hold the options of `set_printoptions`.

    Attributes:
      precision: digits after the point.
      threshold: number of elements above which a tensor is summarised with `...`.
      edgeitems: elements shown at both ends of each summarised dimension.
      linewidth: characters a line, for line breaks.
      sci_mode: scientific notation always (True), never (False), or by the values (None).
    """

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES: dict[str, dict[str, float]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}  # fmt: skip

_options = PrintOptions()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors print, as `torch.set_printoptions` does, for all threads.

    Args:
      precision: digits after the point, None leaves it; and so for the next three.
      threshold: number of elements above which a tensor is summarised.
      edgeitems: elements shown at both ends of each summarised dimension.
      linewidth: characters a line.
      profile: `"default"`, `"short"` or `"full"`: values for the four above, which still win. As in
        PyTorch any other name changes nothing.
      sci_mode: scientific notation always or never. As in PyTorch, None is not "leave it" here but
        "by the values".

    >>> import numpy as np
    >>> set_printoptions(precision=2)
    >>> print(format_tensor(np.float32([1.12345])))
    tensor([1.12])
    >>> set_printoptions(profile="default")
    >>> print(format_tensor(np.float32([1.12345])))
    tensor([1.1235])
    """
    global _options
    given = {
        "precision": precision, "threshold": threshold,
        "edgeitems": edgeitems, "linewidth": linewidth,
    }  # fmt: skip
    changes: dict[str, Any] = dict(_PROFILES.get(profile or "", {}))
    changes.update({name: value for name, value in given.items() if value is not None})
    _options = dataclasses.replace(_options, **changes, sci_mode=sci_mode)


def get_printoptions() -> dict[str, Any]:
    """Return the current options, as keyword arguments for `set_printoptions`."""
    return dataclasses.asdict(_options)


@contextlib.contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Set print options for the block; the arguments are those of `set_printoptions`."""
    held = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        set_printoptions(**held)


def dtype_name(dtype: Any) -> str:
    """Return what PyTorch prints for a dtype: `"torch.float64"`."""
    return f"torch.{np.dtype(dtype).name}"


def format_tensor(
    array: np.ndarray[Any, Any],
    *,
    suffixes: Iterable[str] = (),
    default_dtype: Any = np.float32,
    device: Any = None,
    prefix: str = "tensor(",
) -> str:
    """Format an array as PyTorch prints the tensor of the same values.

    The dtype is shown where PyTorch shows it: never for int64, bool, the default float and its
    complex, unless the tensor is empty.

    Args:
      array: any shape; bool, integer, float (`bfloat16` and float8 too) or complex.
      suffixes: what follows the values, size and dtype: `"grad_fn=<AddBackward0>"`.
      default_dtype: `torch.get_default_dtype()`.
      device: the device to show, None for the default one, which is not shown.
      prefix: the opening, `"Parameter("` for a subclass of that name.

    >>> import numpy as np
    >>> print(format_tensor(np.array([1.0, 2.5]), suffixes=["grad_fn=<AddBackward0>"]))
    tensor([1.0000, 2.5000], dtype=torch.float64, grad_fn=<AddBackward0>)
    >>> print(format_tensor(np.zeros((0, 3), np.float32)))
    tensor([], size=(0, 3))
    """
    default = np.dtype(default_dtype)
    default_complex = np.dtype(np.complex128 if default == np.float64 else np.complex64)
    ends = [] if device is None else [f"device='{device}'"]
    if array.size == 0:
        if array.ndim != 1:
            ends.append(f"size={array.shape}")
        # No elements tell that it is an int64: every dtype but the default is shown.
        shown = array.dtype != default
    else:
        if not _options.edgeitems:
            ends.append(f"size={array.shape}")
        shown = array.dtype not in (default, default_complex, np.int64, np.bool_)
    if shown:
        ends.append(f"dtype={dtype_name(array.dtype)}")
    contents = _contents(array, len(prefix))
    return join_suffixes(prefix + contents, [*ends, *suffixes], len(prefix))


def format_shape(
    shape: Any, dtype: Any, *, suffixes: Iterable[str] = (), default_dtype: Any, prefix: str
) -> str:
    """Format a tensor on the device `meta`, whose values nobody knows, as PyTorch prints it."""
    ends = ["device='meta'", f"size={tuple(shape)}"]
    if dtype != np.dtype(default_dtype):
        ends.append(f"dtype={dtype_name(dtype)}")
    return join_suffixes(prefix + "...", [*ends, *suffixes], len(prefix))


def join_suffixes(text: str, suffixes: list[str], indent: int, new_line: bool = False) -> str:
    """End the text of a tensor with facts of it, the first on a new line if told so."""
    # The first length is one too many, as in PyTorch.
    length = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if new_line or length + len(suffix) + 2 > _options.linewidth:
            text += ",\n" + " " * indent + suffix
            length, new_line = indent + len(suffix), False
        else:
            text += ", " + suffix
            length += len(suffix) + 2
    return text + ")"


def _contents(array: np.ndarray[Any, Any], indent: int) -> str:
    if array.size == 0:
        return "[]"
    summarize = array.size > _options.threshold
    sample = _edges(array) if summarize else array
    if array.dtype.kind == "c":
        real, imag = _NumberFormat(sample.real), _NumberFormat(sample.imag)
        # Both parts, ", " and the "j".
        width = real.width + imag.width + 3
        return _nested(array, indent, summarize, lambda z: _complex_text(z, real, imag), width)
    form = _NumberFormat(sample)
    return _nested(array, indent, summarize, form, form.width + 2)


def _complex_text(value: complex, real: _NumberFormat, imag: _NumberFormat) -> str:
    tail = (imag(value.imag) + "j").lstrip()
    return real(value.real) + (tail if tail[0] in "+-" else "+" + tail)


def _edges(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the elements of a summarised array that are shown: they choose the format."""
    edge = _options.edgeitems
    if not edge:
        return array if array.ndim < 2 else array[:0]
    for axis, size in enumerate(array.shape):
        if size > 2 * edge:
            kept = [*range(edge), *range(size - edge, size)]
            array = np.take(array, kept, axis=axis)
    return array


def _is_floating(dtype: np.dtype[Any]) -> bool:
    """Return True for NumPy's floats and those of ml_dtypes, whose `kind` says nothing."""
    return dtype.name.startswith(("float", "bfloat"))


class _NumberFormat:
    """The format that real numbers of one array share, `width` characters wide."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.floating = _is_floating(array.dtype)
        self.integral = True
        self.scientific = False
        self.width = 1
        self.precision = _options.precision
        if not self.floating:
            self.width = max((len(str(x)) for x in array.reshape(-1).tolist()), default=1)
            return
        values = array.reshape(-1).astype(np.float64)
        values = values[np.isfinite(values) & (values != 0)]
        if values.size == 0:
            return
        self.integral = bool(np.all(values == np.ceil(values)))
        self.scientific = _is_wide(np.abs(values))
        texts = (self._text(x) for x in values.tolist())
        self.width = max(self.width, *(len(text) for text in texts))

    def _text(self, value: float) -> str:
        if self.scientific:
            return f"{value:.{self.precision}e}"
        if not self.integral:
            return f"{value:.{self.precision}f}"
        return f"{value:.0f}" + ("." if math.isfinite(value) else "")

    def __call__(self, value: Any) -> str:
        return (self._text(value) if self.floating else str(value)).rjust(self.width)


def _is_wide(values: np.ndarray[Any, Any]) -> bool:
    """Tell whether these positive numbers need scientific notation."""
    if _options.sci_mode is not None:
        return _options.sci_mode
    low, high = float(values.min()), float(values.max())
    return high / low > 1000.0 or high > 1.0e8 or low < 1.0e-4


def _nested(
    array: np.ndarray[Any, Any],
    indent: int,
    summarize: bool,
    show: Callable[[Any], str],
    width: int,
) -> str:
    """Write an array with brackets and line breaks.

    `width` is that of one element with its comma and space.
    """
    if array.ndim == 0:
        return show(array.item())
    if array.ndim == 1:
        return _row(array, indent, summarize, show, width)
    edge = _options.edgeitems

    def rows(part: np.ndarray[Any, Any]) -> list[str]:
        return [_nested(row, indent + 1, summarize, show, width) for row in part]

    if summarize and len(array) > 2 * edge:
        parts = [*rows(array[:edge]), "...", *rows(array[len(array) - edge :])]
    else:
        parts = rows(array)
    return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def _row(
    array: np.ndarray[Any, Any],
    indent: int,
    summarize: bool,
    show: Callable[[Any], str],
    width: int,
) -> str:
    edge = _options.edgeitems
    if summarize and not edge:
        texts = ["..."]
    elif summarize and len(array) > 2 * edge:
        texts = [show(x) for x in array[:edge].tolist()]
        texts += [" ...", *(show(x) for x in array[-edge:].tolist())]
    else:
        texts = [show(x) for x in array.tolist()]
    per_line = max(1, (_options.linewidth - indent) // width)
    lines = [", ".join(texts[i : i + per_line]) for i in range(0, len(texts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
