"""Run an entry of PyTorch's sample database through torch and leafax and compare."""

from __future__ import annotations

import dataclasses
import math
import random
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

import leafax

MAX_NUMEL = 2000
# By the dtype of the samples or of a result, whichever is coarser.
TOLERANCE = {
    torch.float64: 1e-7, torch.complex128: 1e-7, torch.float32: 1e-4, torch.complex64: 1e-4,
    torch.float16: 5e-3, torch.bfloat16: 4e-2,
}  # fmt: skip
# Entries whose values are drawn: shape, dtype and requires_grad are compared.
RANDOM = {
    "bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal",
    "uniform", "rand_like", "randint", "randint_like", "randn", "randn_like", "rand",
    "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d",
    "nn.functional.alpha_dropout", "nn.functional.feature_alpha_dropout", "empty", "empty_like",
    "new_empty", "new_empty_strided", "empty_strided", "empty_permuted", "randperm",
    "nn.functional.rrelu", "nn.functional.fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d", "pca_lowrank", "svd_lowrank",
    "nn.functional.multi_head_attention_forward",
}  # fmt: skip
# Factors are unique up to signs; what they make together is compared elsewhere.
UNSIGNED = {
    "linalg.svd", "svd", "linalg.qr", "qr", "linalg.eigh", "linalg.eig", "geqrf",
}  # fmt: skip


class Mismatch(AssertionError):
    """How leafax's answer differs from torch's."""


def lookup(name: str) -> Callable[..., Any] | None:
    """leafax's function of that name."""
    found: Any = leafax
    for part in name.split("."):
        found = getattr(found, part, None)
    return found if callable(found) else None


def every_sample(entry: Any, dtype: torch.dtype) -> Iterator[Any]:
    """All samples of an entry, the same ones each time."""
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    grads = entry.supports_autograd and dtype in entry.supported_backward_dtypes("cpu")
    yield from entry.sample_inputs("cpu", dtype, requires_grad=grads)


def samples(entry: Any, dtype: torch.dtype, limit: int) -> Iterator[tuple[int, Any]]:
    """Small samples (and their numbers) that differ in ranks or in arguments' names and kinds."""
    seen: set[Any] = set()
    for number, sample in enumerate(every_sample(entry, dtype)):
        parts = (sample.input, sample.args, sample.kwargs)
        if numel(parts) > MAX_NUMEL:
            continue
        kind = _kind(parts)
        if kind in seen:
            continue
        seen.add(kind)
        yield number, sample
        if len(seen) >= limit:
            return


def numel(x: Any) -> int:
    if isinstance(x, torch.Tensor):
        return x.numel()
    if isinstance(x, dict):
        return sum(numel(y) for y in x.values())
    return sum(numel(y) for y in x) if isinstance(x, (tuple, list)) else 0


def _kind(x: Any) -> Any:
    if isinstance(x, torch.Tensor):
        return ("t", x.dim(), x.dtype, x.requires_grad, 0 in x.shape)
    if isinstance(x, dict):
        return tuple((k, _kind(v)) for k, v in sorted(x.items()))
    if isinstance(x, (tuple, list)):
        return (type(x), len(x), *[_kind(y) for y in x[:3]])
    return x if isinstance(x, (bool, str)) else type(x)


def to_leafax(x: Any, tensors: list[Any]) -> Any:
    """Sample arguments with leafax tensors; those that require grad go to `tensors`."""
    if isinstance(x, torch.Tensor):
        if x.layout is not torch.strided:
            raise Mismatch("sparse")
        out = leafax.from_numpy(_array(x))
        if x.dtype is torch.bfloat16:
            out = out.to(leafax.bfloat16)
        if x.requires_grad:
            out.requires_grad_()
            tensors.append(out)
        return out
    if isinstance(x, torch.dtype):
        return getattr(leafax, str(x).removeprefix("torch."))
    if isinstance(x, torch.device) or isinstance(x, (torch.layout, torch.memory_format)):
        return None
    if isinstance(x, torch.nn.LinearCrossEntropyOptions):
        return leafax.nn.LinearCrossEntropyOptions(**dataclasses.asdict(x))
    if isinstance(x, torch.nn.PairwiseDistance):
        distance = leafax.nn.functional.pairwise_distance
        return lambda a, b: distance(a, b, x.norm, x.eps, x.keepdim)
    if isinstance(x, dict):
        return {k: to_leafax(v, tensors) for k, v in x.items()}
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*[to_leafax(y, tensors) for y in x])
    if isinstance(x, torch.Size):
        return tuple(x)
    if isinstance(x, (tuple, list)):
        return type(x)(to_leafax(y, tensors) for y in x)
    if isinstance(x, torch.Generator):
        return None
    return x


def _array(x: torch.Tensor) -> np.ndarray:
    x = x.detach().resolve_conj().resolve_neg()
    x = x.float() if x.dtype is torch.bfloat16 else x
    return np.array(x.numpy(force=True))


def to_torch(x: Any, tensors: list[Any]) -> Any:
    """Sample arguments with fresh leaves; those that require grad go to `tensors`."""
    if isinstance(x, torch.Tensor):
        out = x.detach().clone(memory_format=torch.contiguous_format)
        out.requires_grad_(x.requires_grad)
        if x.requires_grad:
            tensors.append(out)
        return out
    if isinstance(x, dict):
        return {k: to_torch(v, tensors) for k, v in x.items()}
    if isinstance(x, torch.Size):
        return x
    if isinstance(x, (tuple, list)):
        return type(x)(to_torch(y, tensors) for y in x)
    return x


def flat(x: Any) -> list[Any]:
    """The leaves of nested results."""
    if isinstance(x, (tuple, list)):
        return [z for y in x for z in flat(y)]
    return [x]


def compare(name: str, expected: Any, got: Any, dtype: torch.dtype | None) -> None:
    """Raise `Mismatch` unless values, dtypes, shapes and requires_grad agree."""
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
        if dtype is not None and name not in RANDOM:
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


TIES = {"topk", "kthvalue"}  # which of equal elements is found is not said


def compare_ties(entry: Any, sample: Any, expected: Any, got: Any, dtype: torch.dtype) -> None:
    """Values must agree, and the indices must be places where these values are."""
    close(expected[0].detach(), got[0], dtype)
    k, dim = expected[1], sample.kwargs.get("dim", -1)
    dim = sample.args[1] if len(sample.args) > 1 else dim
    index = torch.from_numpy(np.array(got[1].numpy()))
    if k.shape != index.shape:
        raise Mismatch(f"shape {tuple(index.shape)} instead of {tuple(k.shape)}")
    x = sample.input.detach()
    if x.dim() and index.dim() < x.dim():
        index = index.unsqueeze(dim)
    found = x.gather(dim, index) if x.dim() else x
    close(found.reshape(expected[0].shape), got[0], dtype)


def close(want: torch.Tensor, have: Any, dtype: torch.dtype, unsigned: bool = False) -> None:
    a, b = _array(want), np.asarray(have.detach().resolve_conj().resolve_neg().numpy())
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
    name: str, expected: Any, got: Any, leaves: list[Any], ours: list[Any]
) -> tuple[Any, Any] | None:
    """torch's and leafax's gradients for a fixed random cotangent, where both have them."""
    pairs = [
        (w, g) for w, g in zip(flat(expected), flat(got), strict=True)
        if isinstance(w, torch.Tensor) and w.requires_grad
    ]  # fmt: skip
    if not pairs or not leaves or name in RANDOM or name in UNSIGNED:
        return None
    wants, gots = [p[0] for p in pairs], [p[1] for p in pairs]
    cots = cotangents(wants)
    try:
        want = torch.autograd.grad(wants, leaves, cots, allow_unused=True, retain_graph=True)
    except (RuntimeError, NotImplementedError):
        return None  # torch has no gradient here
    have = leafax.autograd.grad(
        gots, ours, [to_leafax(c, []) for c in cots], allow_unused=True, retain_graph=True
    )
    return want, have


def compare_gradients(recorded: tuple[Any, Any] | None, dtype: torch.dtype) -> None:
    """Raise `Mismatch` unless torch's and leafax's gradients agree."""
    if recorded is None:
        return
    want, have = recorded
    for i, (a, b) in enumerate(zip(want, have, strict=True)):
        if (a is None) != (b is None):
            if a is None and not b.any():  # PyTorch's None and zeros mean the same
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


def run(
    entry: Any, ours: Callable[..., Any], theirs: Callable[..., Any], sample: Any,
    dtype: torch.dtype, inplace: bool = False, together: bool = False,
) -> None:  # fmt: skip
    """One sample through both libraries.

    With `together` leafax computes values and gradients as one program, which takes half as long
    as to look at the values first.
    """
    # What attention drops is drawn too.
    name = "nn.functional.dropout" if sample.kwargs.get("dropout_p") else entry.name
    leaves: list[Any] = []
    mine: list[Any] = []
    args = to_torch((sample.input, *sample.args), leaves), to_torch(sample.kwargs, leaves)
    our_args = to_leafax((sample.input, *sample.args), mine), to_leafax(sample.kwargs, mine)
    if inplace:
        args = ((args[0][0].clone(), *args[0][1:]), args[1])
        our_args = ((our_args[0][0].clone(), *our_args[0][1:]), our_args[1])
    try:
        expected = theirs(*args[0], **args[1])
    except Exception as error:
        try:
            got = ours(*our_args[0], **our_args[1])
            leafax.synchronize()
        except Exception:
            return
        raise Mismatch(f"torch raises {error}") from None
    our_kwargs = {k: v for k, v in our_args[1].items() if k not in DROPPED}
    got = ours(*our_args[0], **our_kwargs)
    halves = dtype in (torch.bfloat16, torch.float16)
    if entry.name in TIES and (halves or not dtype.is_floating_point):
        compare_ties(entry, sample, expected, got, dtype)
        return
    try:
        if together and len(flat(expected)) == len(flat(got)):
            recorded = gradients(name, expected, got, leaves, mine)
            compare(name, expected, got, dtype)
        else:
            compare(name, expected, got, dtype)
            recorded = gradients(name, expected, got, leaves, mine)
        compare_gradients(recorded, dtype)
    except Mismatch as error:
        if "differ" not in str(error) or dtype not in WIDER:
            raise
        compare(name, expected, got, None)  # facts but not values
        exact = wide_answer(theirs, sample, WIDER[dtype], inplace)
        least = TOLERANCE[dtype] / 10
        as_exact(error, exact, answer(expected, leaves), our_answer(got, mine), least)


WIDER = {
    torch.bfloat16: torch.float64, torch.float16: torch.float64, torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}  # fmt: skip


def answer(outs: Any, leaves: list[torch.Tensor]) -> list[np.ndarray]:
    """Values and gradients, as NumPy arrays in double precision."""
    found = [t for t in flat(outs) if isinstance(t, torch.Tensor)]
    arrays = [_array(t) for t in found]
    roots = [t for t in found if t.requires_grad]
    if roots and leaves:
        grads = torch.autograd.grad(
            roots, leaves, cotangents(roots), allow_unused=True, materialize_grads=True
        )
        arrays += [_array(g) for g in grads]
    return arrays


def our_answer(outs: Any, leaves: list[Any]) -> list[np.ndarray]:
    """The same of leafax's results."""
    found = [t for t in flat(outs) if isinstance(t, leafax.Tensor)]
    arrays = [np.asarray(t.detach().resolve_conj().resolve_neg().numpy()) for t in found]
    roots = [t for t in found if t.requires_grad]
    if roots and leaves:
        like = [torch.from_numpy(r.detach().numpy().astype(_double(r))) for r in roots]
        cots = [to_leafax(c, []).to(r.dtype) for c, r in zip(cotangents(like), roots, strict=True)]
        grads = leafax.autograd.grad(roots, leaves, cots, allow_unused=True, materialize_grads=True)
        arrays += [np.asarray(g.numpy()) for g in grads]
    return arrays


def _double(x: Any) -> str:
    return "complex128" if x.is_complex() else "float64"


def wide_answer(
    theirs: Callable[..., Any], sample: Any, dtype: torch.dtype, inplace: bool
) -> list[np.ndarray]:
    """torch's answer for the sample in double precision."""
    leaves: list[Any] = []
    args = widened((sample.input, *sample.args), dtype, leaves)
    args = (args[0].clone(), *args[1:]) if inplace else args
    return answer(theirs(*args, **widened(sample.kwargs, dtype, leaves)), leaves)


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


DROPPED = ("device", "layout", "memory_format", "pin_memory", "generator")


def kwargs_of(sample: Any) -> dict[str, Any]:
    """The sample's keyword arguments for leafax."""
    return {k: v for k, v in to_leafax(sample.kwargs, []).items() if k not in DROPPED}


def _ours(entry: Any) -> Callable[..., Any] | None:
    """leafax's function; where torch's entry is Python code, the same code on leafax."""
    code = entry.op
    if isinstance(code, types.FunctionType) and code.__module__.startswith("torch.testing"):
        scope = dict(code.__globals__, torch=leafax, wrapper_set_seed=lambda f, *a, **k: f(*a, **k))
        if any(name.startswith("reference_") for name in code.__code__.co_names):
            return None
        return types.FunctionType(
            code.__code__, scope, code.__name__, code.__defaults__, code.__closure__
        )
    return lookup(entry.name)


def variants(entry: Any) -> Iterator[tuple[str, Callable[..., Any], Callable[..., Any]]]:
    """Function, method and in-place forms that both libraries have."""
    ours = _ours(entry)
    theirs = entry.op
    methods = (entry.name, entry.name + "_")
    if lookup(entry.name) is None and not any(hasattr(leafax.Tensor, m) for m in methods):
        return
    if ours is not None and not (_is_method(entry) and ours is lookup(entry.name)):
        yield "function", ours, theirs
    method = getattr(leafax.Tensor, entry.name, None)
    if method is not None and callable(method):
        their_method = entry.method_variant or (theirs if _is_method(entry) else None)
        if their_method is not None:
            yield "method", method, their_method
    if entry.inplace_variant is not None:
        name = getattr(entry.inplace_variant, "__name__", "")
        in_place = getattr(leafax.Tensor, name, None)
        if in_place is not None and callable(in_place):
            yield "inplace", in_place, entry.inplace_variant


def _is_method(entry: Any) -> bool:
    return hasattr(torch.Tensor, entry.name) and not hasattr(torch, entry.name)


def check(entry: Any, dtype: torch.dtype = torch.float64, limit: int = 6) -> str:
    """ "" if all samples agree, else what is wrong; "missing" if leafax has no such name."""
    return next(failures(entry, dtype, limit), "")


def failures(entry: Any, dtype: torch.dtype, limit: int) -> Iterator[str]:
    """What is wrong, one line for each variant of each sample that does not agree."""
    found = list(variants(entry))
    if not found:
        yield "missing"
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, sample in samples(entry, dtype, limit):
            yield from wrong(entry, found, number, sample, dtype)


def wrong(
    entry: Any, found: Any, number: int, sample: Any, dtype: torch.dtype, together: bool = False
) -> Iterator[str]:
    """What is wrong with one sample."""
    for variant, ours, theirs in found:
        try:
            run(entry, ours, theirs, sample, dtype, variant == "inplace", together)
        except Exception as error:
            text = f"{variant}: {type(error).__name__}: {error}".split("\n")[0][:200]
            yield f"{text} [{number}: {_describe(sample)}]"


def _describe(sample: Any) -> str:
    def one(x: Any) -> str:
        if isinstance(x, torch.Tensor):
            return f"{str(x.dtype)[6:]}{list(x.shape)}"
        if isinstance(x, (tuple, list)):
            return "(" + ", ".join(one(y) for y in x) + ")"
        return repr(x)

    parts = [one(sample.input), *map(one, sample.args)]
    parts += [f"{k}={one(v)}" for k, v in sample.kwargs.items()]
    return ", ".join(parts)[:200]
