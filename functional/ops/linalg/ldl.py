"""LDL factorization of symmetric matrices, in LAPACK's packed form, and solving by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...program.dtypes import is_complex, is_integral, scalar_name
from ...program.op import Decorator, Fault, ops_with
from .checks import (  # fmt: skip
    batched,
    need_kernel,
    need_linear_system,
    need_pivots_of,
    need_square,
)
from .linalg import LINALG, _t

op: Decorator = ops_with(steep=True)
Array = jax.Array


class LDLFactor(NamedTuple):
    LD: Array
    pivots: Array


class LDLFactorEx(NamedTuple):
    LD: Array
    pivots: Array
    info: Array


_ALPHA = (1 + np.sqrt(17)) / 8  # Bunch and Kaufman's bound on the growth of elements


def _size(x: Array) -> Array:
    """Measure a complex number as LAPACK does, |re| + |im|."""
    return jnp.abs(x.real) + jnp.abs(x.imag) if is_complex(x.dtype) else jnp.abs(x)


def _swap(order: Array, a: Any, b: Any) -> Array:
    return jnp.where(order == a, b, jnp.where(order == b, a, order))


def _ldl(lower: Array, hermitian: bool) -> tuple[Array, Array, Array]:
    """Factor one matrix by Bunch and Kaufman's pivoting, as LAPACK's `sytf2` with `uplo="L"`.

    The trailing block is kept whole, so a row is its column and both are swapped at once.
    """
    n = lower.shape[-1]
    row = jnp.arange(n)
    lower = jnp.tril(lower)
    if hermitian and is_complex(lower.dtype):
        lower = jnp.where(row[:, None] == row, lower.real, lower)
    strict = jnp.tril(lower, -1)
    s = lower + (_t(strict) if hermitian else jnp.swapaxes(strict, -1, -2))

    def choose(s: Array, k: Any) -> tuple[Array, Array, Array]:
        own = _size(s[k, k].real if hermitian else s[k, k])
        column = jnp.where(row > k, _size(s[:, k]), -1)
        high, largest = jnp.argmax(column), jnp.max(column)
        across = jnp.max(jnp.where((row >= k) & (row != high), _size(s[high]), -1))
        there = _size(s[high, high].real if hermitian else s[high, high])
        stay = (own >= _ALPHA * largest) | (own * across >= _ALPHA * largest * largest)
        single = there >= _ALPHA * across
        dead = jnp.maximum(own, largest) == 0
        stay = stay | dead
        return jnp.where(stay, k, high), ~stay & ~single, dead

    def one(k: Any, carry: Any) -> Any:
        s, out, pivots, info, _ = carry
        to, double, dead = choose(s, k)
        at = jnp.where(double, k + 1, k)
        order = _swap(row, at, to)
        s = s[order][:, order]
        second = jnp.minimum(k + 1, n - 1)
        d = s[k, k]
        single_column = s[:, k] / jnp.where(dead, jnp.ones((), d.dtype), d)
        a, b, c, e = s[k, k], s[k, second], s[second, k], s[second, second]
        determinant = jnp.where(double, a * e - b * c, jnp.ones((), d.dtype))
        first = (s[:, k] * e - s[:, second] * c) / determinant
        other = (s[:, second] * a - s[:, k] * b) / determinant
        left = jnp.where(double, first, single_column) * (row > at)
        right = jnp.where(double, other, 0) * (row > at)
        tail = (row > at)[:, None] & (row > at)
        change = jnp.outer(left, s[k]) + jnp.outer(right, s[second])
        column = jnp.where(row > at, left, jnp.where(row >= k, s[:, k], out[:, k]))
        beside = jnp.where(row > at, right, jnp.where(row >= at, s[:, second], out[:, second]))
        out = out.at[:, k].set(column)
        out = jnp.where(double, out.at[:, second].set(beside), out)
        number = (to + 1).astype(np.int32)
        pivots = pivots.at[k].set(jnp.where(double, -number, number))
        pivots = jnp.where(double, pivots.at[second].set(-number), pivots)
        info = jnp.where(dead & (info == 0), k + 1, info).astype(np.int32)
        s = jnp.where(tail, s - change, s)
        if hermitian and is_complex(s.dtype):  # rounding must not leave the diagonal complex
            s = jnp.where(row[:, None] == row, s.real, s)
        return s, out, pivots, info, double

    def step(k: Any, carry: Any) -> Any:
        return lax.cond(carry[4], lambda c: (*c[:4], jnp.array(False)), lambda c: one(k, c), carry)

    start = (s, lower, jnp.zeros(n, np.int32), jnp.zeros((), np.int32), jnp.array(False))
    _, out, pivots, info, _ = lax.fori_loop(0, n, step, start)
    return out, pivots, info


def _over_batch(fn: Callable[..., Any], *arrays: Array) -> Any:
    """Map `fn` over all but the last dims of each array (1 for pivots, else 2)."""
    batch = arrays[0].shape[:-2]
    flat = [a.reshape(-1, *a.shape[len(batch) :]) for a in arrays]
    out = jax.vmap(fn)(*flat)
    return jax.tree.map(lambda x: x.reshape(batch + x.shape[1:]), out)


def _underived(name: str) -> dict[str, Any]:
    """Return the columns of an op that PyTorch has no derivative of, by PyTorch's name."""
    words = f"derivative for aten::{name} is not implemented"
    return {"backward": "NotImplemented", "no_gradient": (RuntimeError, words)}


def _check_ldl(
    A: Array, *, hermitian: bool = False, name: str = "torch.linalg.ldl_factor",  # noqa: N803
) -> list[Fault]:  # fmt: skip
    """Check LAPACK's code: PyTorch has no words of its own for a zero block."""
    if not A.size:
        return []
    info = _over_batch(lambda a: _ldl(a, hermitian)[2], A).reshape(-1)
    first = info[jnp.argmax(info != 0)]
    return [Fault(first != 0, RuntimeError, f"{name}: Unknown error code: {{value}}.", first)]


def _check_ldl_ex(
    A: Array, *, hermitian: bool = False, check_errors: bool = False,  # noqa: N803
) -> list[Fault]:  # fmt: skip
    name = "torch.linalg.ldl_factor_ex"
    return _check_ldl(A, hermitian=hermitian, name=name) if check_errors else []


@op(name="ldl_factor_ex", check=_check_ldl_ex, **_underived("linalg_ldl_factor_ex"), **LINALG)
def ldl_factor_ex(
    A: Array, *, hermitian: bool = False, check_errors: bool = False,  # noqa: N803
) -> LDLFactorEx:  # fmt: skip
    """Factor symmetric (or Hermitian) matrices: `L` and `D` in one, and the rows swapped, from 1.

    Only the lower triangle is read. A 2x2 block of `D` has the same negative pivot twice.
    """
    need_square("torch.linalg.ldl_factor_ex", A)
    need_kernel("ldl_factor_kernel_cpu", A)
    if not A.size:
        batch = A.shape[:-2]
        return LDLFactorEx(A, jnp.zeros(A.shape[:-1], np.int32), jnp.zeros(batch, np.int32))
    return LDLFactorEx(*_over_batch(lambda a: _ldl(a, hermitian), A))


@op(name="ldl_factor", check=_check_ldl, **_underived("linalg_ldl_factor_ex"), **LINALG)
def ldl_factor(A: Array, *, hermitian: bool = False) -> LDLFactor:  # noqa: N803
    """Compute `ldl_factor_ex` without the third result."""
    made = ldl_factor_ex(A, hermitian=hermitian)
    return LDLFactor(made.LD, made.pivots)


def _ldl_solved(packed: Array, pivots: Array, b: Array, hermitian: bool) -> Array:
    """Solve as LAPACK's `sytrs` with `uplo="L"`: forward through L and D, back through L.mH."""
    n = packed.shape[-1]
    row = jnp.arange(n)
    double = pivots < 0

    def pair(open_: Array, two: Array) -> tuple[Array, Array]:
        return two & ~open_, two & ~open_

    starts = lax.scan(pair, jnp.array(False), double)[1]  # first rows of 2x2 blocks
    at = jnp.where(starts, row + 1, row)
    to = jnp.abs(pivots) - 1

    def forward(k: Any, b: Array) -> Array:
        b = b[_swap(row, at[k], to[k])]
        second = jnp.minimum(k + 1, n - 1)
        tail = (row > at[k])[:, None]
        two = starts[k]
        change = jnp.outer(packed[:, k], b[k])
        change = change + jnp.where(two, jnp.outer(packed[:, second], b[second]), 0)
        below = jnp.where(tail, b - change, b)
        d, e, g = packed[k, k], packed[second, second], packed[second, k]
        f = jnp.conj(g) if hermitian else g
        determinant = jnp.where(two, d * e - f * g, jnp.ones((), d.dtype))
        first = jnp.where(two, (e * b[k] - f * b[second]) / determinant, b[k] / d)
        other = jnp.where(two, (d * b[second] - g * b[k]) / determinant, below[second])
        below = below.at[second].set(other)
        return below.at[k].set(first)

    def back(i: Any, b: Array) -> Array:
        k = n - 1 - i
        second = jnp.minimum(k + 1, n - 1)
        tail = row > at[k]
        left = jnp.where(tail, packed[:, k], 0)
        right = jnp.where(tail & starts[k], packed[:, second], 0)
        left, right = (jnp.conj(left), jnp.conj(right)) if hermitian else (left, right)
        b = b.at[second].add(-jnp.where(starts[k], right @ b, 0))
        b = b.at[k].add(-(left @ b))
        return b[_swap(row, at[k], to[k])]

    ends = double & ~starts  # second rows of 2x2 blocks: done with the first
    b = lax.fori_loop(0, n, lambda k, b: jnp.where(ends[k], b, forward(k, b)), b)
    return lax.fori_loop(0, n, lambda i, b: jnp.where(ends[n - 1 - i], b, back(i, b)), b)


def _check_ldl_pivots(LD: Array, pivots: Array, B: Array, **_: Any) -> list[Fault]:  # noqa: N803
    to = jnp.abs(pivots)
    words = "Pivots given to ldl_solve must all satisfy |pivot| {}. Did you properly pass the "
    words += "result of ldl_factor?"
    bad = ((to < 1, ">= 1"), (to > LD.shape[-2], "<= LD.size(-2)"))
    return [Fault(found, RuntimeError, words.format(what)) for found, what in bad]


@op(name="ldl_solve", check=_check_ldl_pivots, **_underived("linalg_ldl_solve"), **LINALG)
def ldl_solve(LD: Array, pivots: Array, B: Array, *, hermitian: bool = False) -> Array:  # noqa: N803
    """Solve for a symmetric (or Hermitian) matrix whose `ldl_factor` this is."""
    name = "torch.linalg.ldl_solve"
    need_square(name, LD)
    need_linear_system(name, LD, B)
    need_pivots_of(name, "LD", LD, pivots)
    if not is_integral(pivots.dtype) or pivots.dtype == bool:
        raise RuntimeError(
            f"{name}: Expected pivots to be integers. Got {scalar_name(pivots.dtype)}"
        )
    packed, b = batched(LD, B)
    need_kernel("ldl_solve_kernel_cpu", b)
    if not b.size:
        return b
    swaps = jnp.broadcast_to(pivots, packed.shape[:-1])
    return _over_batch(lambda a, p, b: _ldl_solved(a, p, b, hermitian), packed, swaps, b)  # type: ignore[no-any-return]
