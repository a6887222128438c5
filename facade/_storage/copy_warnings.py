"""Warnings of what PyTorch has to copy, or to make up, before it can begin."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._core.handle import Handle
from .._core.warn_once import warn_once
from .strides import is_contiguous

_UNTOLD = {
    "stft": ",which is known to cause spectral leakage. Other windows such as torch.hann_window or "
    "torch.hamming_window are recommended to reduce spectral leakage.",
    "istft": ".Please provide the same window used by stft to make the inversion lossless.",
}
# `stft` is Python before it is C++: these come first, most from `pad`.
_BEFORE = (
    "stft align_to_window", "Unrecognised padding", "Padding ", "Argument #4", "Expected 2D or 3D",
)  # fmt: skip


def without_window(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    """Warn for `stft` and `istft` without window, unless the parser refused the call.

    `istft` warns of what it fills with zeros, too.
    """

    @functools.wraps(fn)
    def transform(*args: Any, **kwargs: Any) -> Any:
        try:
            out = fn(*args, **kwargs)
        except (RuntimeError, IndexError) as error:
            if not str(error).startswith(_BEFORE):
                tell(args, kwargs)
            raise
        tell(args, kwargs)
        if name == "istft" and _falls_short(*args, **kwargs):
            warn_once(
                "The length of signal is shorter than the length parameter. Result is being padded "
                "with zeros in the tail. Please check your center and hop_length settings."
            )
        return out

    def tell(args: Any, kwargs: Any) -> None:
        if (args[4] if len(args) > 4 else kwargs.get("window")) is None:
            warn_once(
                "A window was not provided. A rectangular window will be applied"
                f"{_UNTOLD[name]}To suppress this warning and use a rectangular "
                "window, explicitly set `window=torch.ones(n_fft, device=<device>)`."
            )

    return transform


def _falls_short(
    input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Any = None, center: bool = True, normalized: bool = False,
    onesided: bool | None = None, length: int | None = None, return_complex: bool = False,
) -> bool:  # fmt: skip
    """Return whether the frames end before the signal that `istft` is asked for."""
    hop = n_fft // 4 if hop_length is None else hop_length
    start = n_fft // 2 if center else 0
    return length is not None and start + length > n_fft + hop * (input.shape[-1] - 1)


def in_rows(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    """Warn for `searchsorted` and `bucketize` of data that do not lie row by row."""
    places = _PLACES[name]

    @functools.wraps(fn)
    def search(*args: Any, **kwargs: Any) -> Any:
        out = fn(*args, **kwargs)
        for what, place, key in places:
            x = args[place] if place < len(args) else kwargs.get(key)
            # What is lazily negated is resolved first, into rows.
            if isinstance(x, Handle) and not is_contiguous(x) and not x.is_neg():  # type: ignore[attr-defined]
                warn_once(
                    f"torch.searchsorted(): {what} tensor is non-contiguous, this will lower the "
                    "performance due to extra data copy when converting non-contiguous tensor to "
                    f"contiguous, please use contiguous {what} tensor if possible. This message "
                    "will only appear once per program."
                )
        return out

    return search


_PLACES = {
    "searchsorted": (
        ("input value", 1, "input"), ("boundary", 0, "sorted_sequence"), ("sorter", 9, "sorter"),
    ),
    "bucketize": (("input value", 0, "input"), ("boundary", 1, "boundaries")),
}  # fmt: skip


def one_side_more(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    """Warn where `padding="same"` of a convolution needs more on one side."""
    dims = int(name[-2])

    @functools.wraps(fn)
    def convolution(*args: Any, **kwargs: Any) -> Any:
        out = fn(*args, **kwargs)
        if (args[4] if len(args) > 4 else kwargs.get("padding")) == "same":
            weight = args[1] if len(args) > 1 else kwargs["weight"]
            given = args[5] if len(args) > 5 else kwargs.get("dilation", 1)
            steps = (given,) if isinstance(given, int) else tuple(given)
            steps *= dims // len(steps)  # one may stand for all
            if any(d * (k - 1) % 2 for d, k in zip(steps, weight.shape[2:], strict=True)):
                warn_once(
                    "Using padding='same' with even kernel lengths and odd dilation may require a "
                    "zero-padded copy of the input be created"
                )
        return out

    return convolution


CONVOLUTIONS = {f"conv{n}d": one_side_more for n in (1, 2, 3)}
FUNCTIONS = {
    "stft": without_window, "istft": without_window, "searchsorted": in_rows, "bucketize": in_rows,
    **CONVOLUTIONS,
}  # fmt: skip
METHODS = ("stft", "istft")
