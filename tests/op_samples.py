"""Run an entry of PyTorch's sample database through torch and leafax and compare."""

from __future__ import annotations

import math
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

import leafax

MAX_NUMEL = 2000
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


def samples(entry: Any, dtype: torch.dtype, limit: int) -> Iterator[Any]:
    """Small samples that differ in shapes' ranks or in their arguments' names and kinds."""
    seen: set[Any] = set()
    torch.manual_seed(0)
    np.random.seed(0)
    grads = entry.supports_autograd and dtype in (torch.float64, torch.complex64)
    for sample in entry.sample_inputs("cpu", dtype, requires_grad=grads):
        parts = (sample.input, sample.args, sample.kwargs)
        if _numel(parts) > MAX_NUMEL:
            continue
        kind = _kind(parts)
        if kind in seen:
            continue
        seen.add(kind)
        yield sample
        if len(seen) >= limit:
            return


def _numel(x: Any) -> int:
    if isinstance(x, torch.Tensor):
        return x.numel()
    if isinstance(x, dict):
        return sum(_numel(y) for y in x.values())
    return sum(_numel(y) for y in x) if isinstance(x, (tuple, list)) else 0


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


def compare(name: str, expected: Any, got: Any, tolerance: float) -> None:
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
        if name not in RANDOM:
            close(want, have, tolerance, name in UNSIGNED)


def _near(a: Any, b: Any) -> bool:
    try:
        return math.isclose(a, b, rel_tol=1e-6)
    except TypeError:
        return a == b


def close(want: torch.Tensor, have: Any, tolerance: float, unsigned: bool = False) -> None:
    a, b = _array(want), np.asarray(have.detach().numpy())
    if unsigned:
        a, b = np.abs(a), np.abs(b)
    if a.dtype.kind in "fc":
        b = b.astype(a.dtype)
        near = np.allclose(b, a, rtol=tolerance, atol=tolerance, equal_nan=True)
    else:
        near = np.array_equal(a, b)
    if not near:
        with np.errstate(all="ignore"):
            off = np.max(np.abs(a.astype(complex) - b.astype(complex))) if a.size else 0
        raise Mismatch(f"values differ by {off:.3g}")


def cotangents(outs: list[torch.Tensor]) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    made = []
    for out in outs:
        c = random.normal(size=tuple(out.shape))
        if out.is_complex():
            c = c + 1j * random.normal(size=tuple(out.shape))
        made.append(np.asarray(c, _array(out).dtype))
    return made


def compare_gradients(
    name: str, expected: Any, got: Any, leaves: list[Any], ours: list[Any], tolerance: float
) -> None:
    """Compare vector-Jacobian products with a fixed random cotangent."""
    pairs = [
        (w, g) for w, g in zip(flat(expected), flat(got), strict=True)
        if isinstance(w, torch.Tensor) and w.requires_grad
    ]  # fmt: skip
    if not pairs or not leaves or name in RANDOM or name in UNSIGNED:
        return
    wants, gots = [p[0] for p in pairs], [p[1] for p in pairs]
    cots = cotangents(wants)
    try:
        want = torch.autograd.grad(
            wants, leaves, [torch.from_numpy(c) for c in cots], allow_unused=True
        )
    except (RuntimeError, NotImplementedError):
        return  # torch has no gradient here
    have = leafax.autograd.grad(gots, ours, [leafax.from_numpy(c) for c in cots], allow_unused=True)
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
                close(a, b, tolerance)
            except Mismatch as error:
                raise Mismatch(f"gradient {i}: {error}") from None


def run(
    entry: Any, ours: Callable[..., Any], theirs: Callable[..., Any], sample: Any,
    tolerance: float, inplace: bool = False,
) -> None:  # fmt: skip
    """One sample through both libraries."""
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
    our_kwargs = {k: v for k, v in our_args[1].items() if not _dropped(k, v)}
    got = ours(*our_args[0], **our_kwargs)
    compare(entry.name, expected, got, tolerance)
    compare_gradients(entry.name, expected, got, leaves, mine, tolerance)


def _dropped(name: str, value: Any) -> bool:
    return name in ("device", "layout", "memory_format", "pin_memory", "generator")


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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _check(entry, dtype, limit)


def _check(entry: Any, dtype: torch.dtype, limit: int) -> str:
    found = list(variants(entry))
    if not found:
        return "missing"
    tolerance = {torch.float64: 1e-7, torch.float32: 1e-4, torch.complex64: 1e-4}.get(dtype, 0)
    for sample in samples(entry, dtype, limit):
        for variant, ours, theirs in found:
            try:
                run(entry, ours, theirs, sample, tolerance, variant == "inplace")
            except Exception as error:
                text = f"{variant}: {type(error).__name__}: {error}".split("\n")[0][:200]
                return f"{text} [{_describe(sample)}]"
    return ""


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
