"""Pieces that share memory without being views: `unsafe_split` and its like.

Autograd takes each for a result of its own: writing to one changes the data of the whole, and
neither its version nor its history.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from leafax.functional.program.op import TABLE

from ..._core.trie import local
from ..._core.view_ops import pick
from ..._dispatch.conj_neg_bits import is_conj, is_neg, resolve_conj, resolve_neg
from ..._dispatch.tangents import get_tangent
from ..._storage.shared_storage import share
from ..calls.functions import function

_SAFE = {
    "unsafe_split": "split", "unsafe_split_with_sizes": "split_with_sizes",
    "unsafe_chunk": "chunk",
}  # fmt: skip


def _pieces(name: str) -> Callable[..., Any]:
    whole, view = function(TABLE[name]), TABLE[_SAFE[name]]
    second = TABLE[name].parameters[1]

    @functools.wraps(whole)
    def pieces(input: Any, *args: Any, **kwargs: Any) -> Any:
        outs = whole(input, *args, **kwargs)
        if local.vmap is not None:
            return outs
        given = args[0] if args else kwargs[second]
        dim = args[1] if len(args) > 1 else kwargs.get("dim", 0)
        given = tuple(given) if isinstance(given, (tuple, list)) else int(given)
        _share(view, input, outs, given, dim)
        for level in local.mode.dual:
            if (whole_tangent := get_tangent(input, level)) is not None:
                _share(view, whole_tangent, [get_tangent(out, level) for out in outs], given, dim)
        return outs

    return pieces


def _share(view: Any, whole: Any, pieces: Any, given: Any, dim: int) -> None:
    if is_conj(whole) or is_neg(whole):  # PyTorch's kernels are given a copy
        whole = resolve_neg(resolve_conj(whole.detach()))
    for k, piece in enumerate(pieces):
        share(whole, piece, ((pick(view, k), (given, dim), {}),), view=False)
        piece._vc = [0]


FUNCTIONS = {name: _pieces(name) for name in _SAFE}
