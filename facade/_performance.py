"""Warnings of what PyTorch has to copy, or to make up, before it can begin."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ._handle import Handle
from ._once import warn_once
from ._strides import is_contiguous

_UNTOLD = {
    "stft": ",which is known to cause spectral leakage. Other windows such as torch.hann_window or "
    "torch.hamming_window are recommended to reduce spectral leakage.",
    "istft": ".Please provide the same window used by stft to make the inversion lossless.",
}


def without_window(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    """`stft` and `istft` warn where no window was given, unless the parser refused the call."""

    @functools.wraps(fn)
    def transform(*args: Any, **kwargs: Any) -> Any:
        try:
            out = fn(*args, **kwargs)
        except RuntimeError:
            tell(args, kwargs)
            raise
        tell(args, kwargs)
        return out

    def tell(args: Any, kwargs: Any) -> None:
        if (args[4] if len(args) > 4 else kwargs.get("window")) is None:
            warn_once(
                "A window was not provided. A rectangular window will be applied"
                f"{_UNTOLD[name]}To suppress this warning and use a rectangular "
                "window, explicitly set `window=torch.ones(n_fft, device=<device>)`."
            )

    return transform


def in_rows(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    """`searchsorted` and `bucketize` warn of what does not lie row by row."""
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
FUNCTIONS = {
    "stft": without_window, "istft": without_window, "searchsorted": in_rows, "bucketize": in_rows,
}  # fmt: skip
METHODS = ("stft", "istft")
