"""Compare leafax's results and gradients with torch's, or with the exact ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import leafax
from helpers.op_samples import Mismatch, array_of, flat, to_leafax

# By the dtype of the samples or of a result, whichever is coarser.
TOLERANCE = {
    torch.float64: 1e-7, torch.complex128: 1e-7, torch.float32: 1e-4, torch.complex64: 1e-4,
    torch.float16: 5e-3, torch.bfloat16: 4e-2,
}  # fmt: skip
# Entries whose values are drawn: where another seed gives others, shape, dtype and requires_grad
# are compared.
RANDOM = {
    "bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal",
    "uniform", "rand_like", "randint", "randint_like", "randn", "randn_like", "rand",
    "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d",
    "nn.functional.alpha_dropout", "nn.functional.feature_alpha_dropout", "randperm",
    "nn.functional.rrelu", "nn.functional.fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d", "pca_lowrank", "svd_lowrank",
    "nn.functional.multi_head_attention_forward",
}  # fmt: skip
# Entries whose values are what was in memory: the same is compared.
UNSET = {"empty", "empty_like", "new_empty", "new_empty_strided", "empty_strided", "empty_permuted"}
# Factors are unique up to signs; gradients are compared of what the samples make of them.
UNSIGNED = {"linalg.svd", "svd", "linalg.eigh", "linalg.eig"}


def compare(name: str, expected: Any, got: Any, dtype: torch.dtype | None) -> None:
    """Raise `Mismatch` unless values, dtypes, shapes and requires_grad agree.

    Args:
      dtype: of the sample; None to leave values out.
    """
    wants, gots = flat(expected), flat(got)
    if len(wants) != len(gots):
        raise Mismatch(f"{len(gots)} results, expected {len(wants)}")
    for want, have in zip(wants, gots, strict=True):
        if not isinstance(want, torch.Tensor):
            if isinstance(have, leafax.Tensor):
                raise Mismatch(f"a tensor instead of {want!r}")
            if str(want) != str(have) and not _near(want, have):
                raise Mismatch(f"{have!r} instead of {want!r}")
            continue
        if not isinstance(have, leafax.Tensor):
            raise Mismatch(f"{type(have).__name__} instead of a tensor")
        if str(want.dtype) != str(have.dtype):
            raise Mismatch(f"dtype {have.dtype} instead of {want.dtype}")
        if tuple(want.shape) != tuple(have.shape):
            raise Mismatch(f"shape {tuple(have.shape)} instead of {tuple(want.shape)}")
        if want.requires_grad != have.requires_grad:
            raise Mismatch(f"requires_grad {have.requires_grad}")
        if dtype is not None:
            if name in ("svd", "linalg.svd") and want is not wants[1]:
                want, have = (_of_values(x, wants, name) for x in (want, have))
            close(want, have, dtype, name in UNSIGNED)


def _of_values(x: Any, factors: list[Any], name: str) -> Any:
    """The singular vectors that belong to singular values; the rest is any basis."""
    if len(factors) < 3 or x.dim() < 2:
        return x
    count = factors[1].shape[-1]
    rows = name == "linalg.svd" and tuple(x.shape) == tuple(factors[2].shape)
    if rows and tuple(factors[0].shape) == tuple(x.shape):
        return x  # square: all of them belong to one
    return x[..., :count, :] if rows else x[..., :count]


def _near(a: Any, b: Any) -> bool:
    try:
        return math.isclose(a, b, rel_tol=1e-6)
    except TypeError:
        return a == b


# Which of equal elements is found is not said.
TIES = {"topk", "kthvalue", "mode", "sort", "argsort", "msort"}


def tied(name: str, sample: Any) -> bool:
    """Tell whether some of the elements that the entry orders are equal."""
    if name not in TIES or sample.kwargs.get("stable"):
        return False
    x = sample.input.detach()
    return x.unique().numel() < x.numel()


def compare_ties(name: str, sample: Any, expected: Any, got: Any, dtype: torch.dtype) -> None:
    """Values must agree, and the indices must be places where these values are."""
    x = sample.input.detach()
    dim = sample.kwargs.get("dim", -1 if name != "msort" else 0)
    place = 0 if name == "argsort" else 1
    dim = sample.args[place] if len(sample.args) > place else dim
    wants, gots = flat(expected), flat(got)
    if name != "argsort":
        close(wants[0].detach(), gots[0], dtype)
    if name == "msort":
        return
    index = torch.from_numpy(np.array(gots[-1].numpy()))
    if wants[-1].shape != index.shape:
        raise Mismatch(f"shape {tuple(index.shape)} instead of {tuple(wants[-1].shape)}")
    if name in ("sort", "argsort") and x.dim():
        every = index.sort(dim).values.movedim(dim, -1)
        if not torch.equal(every, torch.arange(x.shape[dim]).expand(every.shape)):
            raise Mismatch("some index is not there")
    theirs = wants[-1]
    if x.dim() and index.dim() < x.dim():
        index, theirs = index.unsqueeze(dim), theirs.unsqueeze(dim)
    if x.dim() and not torch.equal(x.gather(dim, index), x.gather(dim, theirs)):
        raise Mismatch("an index is of another value")


def close(want: torch.Tensor, have: Any, dtype: torch.dtype, unsigned: bool = False) -> None:
    a, b = array_of(want), _values(have)
    if unsigned:
        a, b = np.abs(a), np.abs(b)
    if a.dtype.kind in "fc":
        b = b.astype(a.dtype)
        tolerance = max(TOLERANCE.get(want.dtype, 0), TOLERANCE.get(dtype, 0))
        near = np.allclose(b, a, rtol=tolerance, atol=tolerance, equal_nan=True)
    else:
        near = np.array_equal(a, b)
    if not near:
        with np.errstate(all="ignore"):
            off = np.max(np.abs(a.astype(complex) - b.astype(complex))) if a.size else 0
        raise Mismatch(f"values differ by {off:.3g}")


def cotangents(outs: list[torch.Tensor]) -> list[torch.Tensor]:
    draw = np.random.default_rng(0)
    made = []
    for out in outs:
        c = draw.normal(size=tuple(out.shape))
        if out.is_complex():
            c = c + 1j * draw.normal(size=tuple(out.shape))
        made.append(torch.as_tensor(c).to(out.dtype))
    return made


def gradients(
    expected: Any, got: Any, leaves: list[Any], ours: list[Any], last: bool = False
) -> tuple[Any, Any] | None:
    """torch's and leafax's gradients for a fixed random cotangent, where both have them.

    Args:
      last: leafax's graph is freed, so that its program has nothing to keep for another backward.
    """
    pairs = [
        (w, g) for w, g in zip(flat(expected), flat(got), strict=True)
        if isinstance(w, torch.Tensor) and w.requires_grad
    ]  # fmt: skip
    if not pairs or not leaves:
        return None
    wants, gots = [p[0] for p in pairs], [p[1] for p in pairs]
    cots = cotangents(wants)
    try:
        want = torch.autograd.grad(wants, leaves, cots, allow_unused=True, retain_graph=True)
    except (RuntimeError, NotImplementedError):
        return None  # torch has no gradient here
    have = leafax.autograd.grad(
        gots, ours, [to_leafax(c, []) for c in cots], allow_unused=True, retain_graph=not last
    )
    return want, have


def compare_gradients(recorded: tuple[Any, Any] | None, dtype: torch.dtype) -> None:
    """Raise `Mismatch` unless torch's and leafax's gradients agree."""
    if recorded is None:
        return
    want, have = recorded
    for i, (a, b) in enumerate(zip(want, have, strict=True)):
        if (a is None) != (b is None):
            if a is None and not _values(b).any():  # PyTorch's None and zeros mean the same
                continue
            if b is None and not a.any():
                continue
            raise Mismatch(f"gradient {i} is {'missing' if b is None else 'there'}")
        if a is not None:
            if tuple(a.shape) != tuple(b.shape) or str(a.dtype) != str(b.dtype):
                raise Mismatch(f"gradient {i} is {b.dtype} {tuple(b.shape)}")
            try:
                close(a, b, dtype)
            except Mismatch as error:
                raise Mismatch(f"gradient {i}: {error}") from None


WIDER = {
    torch.bfloat16: torch.float64, torch.float16: torch.float64, torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}  # fmt: skip


def answer(outs: Any, leaves: list[torch.Tensor]) -> list[np.ndarray]:
    """Values and gradients, as NumPy arrays in double precision."""
    found = [t for t in flat(outs) if isinstance(t, torch.Tensor)]
    arrays = [array_of(t) for t in found]
    roots = [t for t in found if t.requires_grad]
    if roots and leaves:
        grads = torch.autograd.grad(
            roots, leaves, cotangents(roots), allow_unused=True, materialize_grads=True
        )
        arrays += [array_of(g) for g in grads]
    return arrays


def our_answer(outs: Any, leaves: list[Any], have: Any = None) -> list[np.ndarray]:
    """The same of leafax's results; `have` are the gradients, where they are known."""
    found = [t for t in flat(outs) if isinstance(t, leafax.Tensor)]
    arrays = [_values(t) for t in found]
    roots = [t for t in found if t.requires_grad]
    if have is not None:
        arrays += [
            np.zeros(x.shape) if g is None else _values(g)
            for g, x in zip(have, leaves, strict=True)
        ]
    elif roots and leaves:
        like = [torch.from_numpy(r.detach().numpy().astype(_double(r))) for r in roots]
        cots = [to_leafax(c, []).to(r.dtype) for c, r in zip(cotangents(like), roots, strict=True)]
        grads = leafax.autograd.grad(roots, leaves, cots, allow_unused=True, materialize_grads=True)
        arrays += [_values(g) for g in grads]
    return arrays


def _values(x: Any) -> np.ndarray:
    return np.asarray(x.detach().resolve_conj().resolve_neg().numpy())


def _double(x: Any) -> str:
    return "complex128" if x.is_complex() else "float64"


def wide_answer(
    theirs: Callable[..., Any], sample: Any, dtype: torch.dtype, inplace: bool,
    seen: Callable[[Any], Any],
) -> list[np.ndarray]:  # fmt: skip
    """torch's answer for the sample in double precision."""
    leaves: list[Any] = []
    args = widened((sample.input, *sample.args), dtype, leaves)
    args = (args[0].clone(), *args[1:]) if inplace else args
    return answer(seen(theirs(*args, **widened(sample.kwargs, dtype, leaves))), leaves)


def widened(x: Any, dtype: torch.dtype, leaves: list[Any]) -> Any:
    if isinstance(x, torch.Tensor):
        wide = x.is_floating_point() or x.is_complex()
        kind = dtype if x.is_complex() == dtype.is_complex else torch.float64
        out = x.detach().to(kind) if wide else x
        if x.requires_grad:
            leaves.append(out.requires_grad_())
        return out
    if isinstance(x, torch.dtype):
        return {torch.bfloat16: torch.float64, torch.float32: torch.float64}.get(x, x)
    if isinstance(x, dict):
        return {k: widened(v, dtype, leaves) for k, v in x.items()}
    if isinstance(x, torch.Size):
        return x
    if isinstance(x, (tuple, list)):
        return type(x)(widened(y, dtype, leaves) for y in x)
    return x


def as_exact(
    error: Exception, exact: list[np.ndarray], theirs: list[np.ndarray], ours: list[np.ndarray],
    least: float,
) -> None:  # fmt: skip
    """Raise `error` unless ours is as near to the exact answer as torch's is, within a factor."""
    if not len(exact) == len(theirs) == len(ours):
        raise error
    for right, a, b in zip(exact, theirs, ours, strict=True):
        if not right.size:
            continue
        with np.errstate(all="ignore"):
            theirs_off = np.nan_to_num(np.abs(a.astype(right.dtype) - right)).max()
            ours_off = np.nan_to_num(np.abs(b.astype(right.dtype) - right)).max()
            scale = np.nan_to_num(np.abs(right)).max()
        odd = np.isnan(b) != np.isnan(right)
        if odd.any() or ours_off > 4 * theirs_off + least * scale:
            raise error
