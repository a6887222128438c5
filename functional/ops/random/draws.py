"""Random factories and fillers; each takes a JAX PRNG key first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...program.dtypes import cast, default_float, finfo, is_complex, is_floating, scalar_name
from ...program.op import Fault, op
from ..shape import dimensions
from .checks import (
    is_static,
    largest,
    need_cauchy,
    need_exponential,
    need_fill_std,
    need_float,
    need_geometric,
    need_log_normal,
    need_probability,
    need_randint,
    need_random,
    need_room,
    need_std,
    need_uniform,
)
from .creation import need_size

Array = jax.Array


def _uniform(key: Array, shape: Sequence[int], dtype: np.dtype) -> Array:
    need_float("check_uniform_bounds", dtype)
    if is_complex(dtype):
        parts = jax.random.uniform(key, (2, *shape), finfo(dtype).dtype)
        return jax.lax.complex(parts[0], parts[1])
    return jax.random.uniform(key, shape, dtype)


def _normal(key: Array, shape: Sequence[int], dtype: np.dtype) -> Array:
    if 0 in shape:  # PyTorch comes to no kernel
        return jnp.zeros(shape, dtype)
    need_float("normal_kernel_cpu", dtype)
    return jax.random.normal(key, shape, dtype)


def _integers(key: Array, shape: Sequence[int], low: Any, high: Any, dtype: np.dtype) -> Array:
    return jax.random.randint(key, shape, low, high, jnp.int64).astype(dtype)


# Factories ---------------------------------------------------------------------------------------


@op(differentiable=False, method=False, random=True, sizes=("size",))
def rand(key: Array, size: Sequence[int], dtype: np.dtype | None = None) -> Array:
    """Draw uniformly on [0, 1)."""
    return _uniform(key, need_size("rand", size), np.dtype(dtype or default_float()))


@op(differentiable=False, method=False, random=True, sizes=("size",))
def randn(key: Array, size: Sequence[int], dtype: np.dtype | None = None) -> Array:
    """Draw from the standard normal law."""
    return _normal(key, need_size("randn", size), np.dtype(dtype or default_float()))


@op(
    differentiable=False, method=False, random=True, sizes=("size",), numbers=("low", "high"),
    need=need_randint,
)  # fmt: skip
def randint(
    key: Array, low: Any, high: Any, size: Sequence[int], dtype: np.dtype | None = None
) -> Array:
    """Draw uniform integers on [low, high)."""
    need_randint(key, low, high, size, dtype)
    return _integers(key, need_size("randint", size), low, high, np.dtype(dtype or "int64"))


@op(differentiable=False, method=False, random=True)
def randperm(key: Array, n: int, dtype: np.dtype | None = None) -> Array:
    """Draw a random order of the integers below `n`."""
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    dtype = np.dtype(dtype or "int64")
    need_room(n, dtype)
    return jax.random.permutation(key, n).astype(dtype)


_BAD_P = (
    "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be "
    "improved?  If so, please report an enhancement request to PyTorch.)"
)


def _draw(key: Array, p: Any, shape: Sequence[int], dtype: np.dtype) -> Array:
    return cast(jax.random.uniform(key, shape, jnp.float32) < p, dtype)


def _check_bernoulli(key: Array, input: Array, p: Any = None) -> list[Fault]:
    return [] if p is not None else [Fault(~((input >= 0) & (input <= 1)), RuntimeError, _BAD_P)]


@op(random=True, numbers=("p",), check=_check_bernoulli, need=need_probability)
def bernoulli(key: Array, input: Array, p: Any = None) -> Array:
    """Draw ones with the probabilities that `input` holds, or with probability `p`; else zeros.

    The gradient is zero.
    """
    if p is not None:
        need_probability(key, input, p)
    elif not is_floating(input.dtype):
        raise NotImplementedError(
            f"\"bernoulli_tensor_cpu_p_\" not implemented for '{scalar_name(input.dtype)}'"
        )
    return _draw(key, input if p is None else p, input.shape, input.dtype)


_BAD_WEIGHTS = "probability tensor contains either `inf`, `nan` or element < 0"
_NO_WEIGHT = "invalid multinomial distribution (sum of probabilities <= 0)"

_NO_EXTREMES = (
    "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
)


def _check_multinomial(
    key: Array, input: Array, num_samples: int, replacement: bool = False
) -> list[Fault]:
    if replacement and num_samples > 1:
        encountering = "invalid multinomial distribution (encountering probability entry "
        bad = [
            Fault(~(input >= 0), RuntimeError, encountering + "< 0)"),  # and NaN
            Fault(input == np.inf, RuntimeError, encountering + "= infinity or NaN)"),
        ]
    else:
        bad = [Fault(~(jnp.isfinite(input) & (input >= 0)), RuntimeError, _BAD_WEIGHTS)]
    return [
        *bad,
        Fault((jnp.sum(input, axis=-1) <= 0) & (input >= 0).all(), RuntimeError, _NO_WEIGHT),
    ]


@op(differentiable=False, random=True, check=_check_multinomial)
def multinomial(key: Array, input: Array, num_samples: int, replacement: bool = False) -> Array:
    """Draw indices by the weights in each row, with or without replacement."""
    if input.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not is_floating(input.dtype):
        raise RuntimeError(
            "multinomial only supports floating-point dtypes for input, got: "
            + scalar_name(input.dtype)
        )
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > input.shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    if input.shape[-1] > 1 << 24:
        raise RuntimeError("number of categories cannot exceed 2^24")
    logits = jnp.log(input.astype(jnp.float32) if input.dtype.itemsize < 4 else input)
    if not input.size:
        if input.ndim == 1 or input.shape[0]:
            raise RuntimeError(_NO_WEIGHT if replacement and num_samples > 1 else _NO_EXTREMES)
        return jnp.zeros((*input.shape[:-1], num_samples), jnp.int64)
    if replacement:
        shape = (num_samples, *input.shape[:-1])
        drawn = jnp.moveaxis(jax.random.categorical(key, logits, shape=shape), 0, -1)
        return drawn.astype(jnp.int64)
    # The largest of logits with Gumbel noise are a draw without replacement.
    noisy = logits + jax.random.gumbel(key, logits.shape, logits.dtype)
    return jax.lax.top_k(noisy, num_samples)[1].astype(jnp.int64)


_NEGATIVE_STD = "normal expects all elements of std >= 0.0"


def _check_normal(
    key: Array, mean: Any, std: Any = 1.0, size: Sequence[int] | None = None,
    dtype: np.dtype | None = None,
) -> list[Fault]:  # fmt: skip
    if is_static(std) or getattr(std, "weak_type", False):
        return []
    return [Fault(std < 0, RuntimeError, _NEGATIVE_STD)]


@op(method=False, random=True, numbers=("mean", "std"), check=_check_normal, need=need_std)
def normal(
    key: Array, mean: Any, std: Any = 1.0, size: Sequence[int] | None = None,
    dtype: np.dtype | None = None,
) -> Array:  # fmt: skip
    """Draw from normal laws with the means and standard deviations given, as numbers or tensors."""
    need_std(key, mean, std)
    tensors = [x for x in (mean, std) if not is_static(x) and not x.weak_type]
    if tensors:
        if tensors[-1] is std and is_complex(std.dtype):
            raise RuntimeError("normal expects standard deviation to be non-complex")
        dtype = np.dtype(tensors[0].dtype)
        size = dimensions.broadcast_shapes(tensors[0].shape, tensors[-1].shape)
    dtype = np.dtype(dtype or default_float())
    noise = _normal(key, need_size("normal", size or ()), dtype)
    # PyTorch's gradient with respect to both is zero.
    mean, std = (jax.lax.stop_gradient(cast(x, dtype)) for x in (mean, std))
    return noise * std + mean


# Fillers -----------------------------------------------------------------------------------------

_FILLER = {"function": False, "method": False, "inplace": True, "random": True}


@op(name="uniform", numbers=("from_", "to"), need=need_uniform, **_FILLER)
def uniform(key: Array, input: Array, from_: Any = 0.0, to: Any = 1.0) -> Array:
    """Fill with uniform numbers on [from_, to)."""
    need_uniform(key, input, from_, to)
    start, end = cast(from_, input.dtype), cast(to, input.dtype)
    return _uniform(key, input.shape, input.dtype) * (end - start) + start


# `normal` and `bernoulli` are factories too; their fillers live in a namespace of their own.


@op(name="normal", namespace="fill", numbers=("mean", "std"), need=need_fill_std, **_FILLER)
def normal_fill(key: Array, input: Array, mean: Any = 0.0, std: Any = 1.0) -> Array:
    """Fill with normal numbers, `normal_`."""
    need_fill_std(key, input, mean, std)
    noise = _normal(key, input.shape, input.dtype)
    return noise * cast(std, input.dtype) + cast(mean, input.dtype)


def _check_p(key: Array, input: Array, p: Any = 0.5) -> list[Fault]:
    return _check_bernoulli(key, p) if hasattr(p, "shape") and p.shape else []


@op(
    name="bernoulli", namespace="fill", numbers=("p",), check=_check_p,
    need=need_probability, backward="BernoulliBackward2", **_FILLER,
)  # fmt: skip
def bernoulli_fill(key: Array, input: Array, p: Any = 0.5) -> Array:
    """Fill with ones with probability `p`, a number or a tensor, `bernoulli_`."""
    if hasattr(p, "shape") and p.shape:
        dimensions.expand_size(p.shape, input.shape, scalar_name(p.dtype))
    need_probability(key, input, p)
    return _draw(key, p, input.shape, input.dtype)


@op(name="random", backward="RandomBackward2", numbers=("from_", "to"), need=need_random, **_FILLER)
def random(key: Array, input: Array, from_: Any = 0, to: Any = None) -> Array:
    """Fill with integers on [from_, to); by default all that the dtype holds exactly."""
    need_random(key, input, from_, to)
    to = min(largest(input.dtype) + 1, (1 << 63) - 1) if to is None else to
    return _integers(key, input.shape, from_, to, input.dtype)


@op(name="exponential", numbers=("lambd",), need=need_exponential, **_FILLER)
def exponential(key: Array, input: Array, lambd: Any = 1.0) -> Array:
    """Fill with exponential numbers of rate `lambd`."""
    need_exponential(key, input, lambd)
    return jax.random.exponential(key, input.shape, input.dtype) / cast(lambd, input.dtype)


@op(name="geometric", numbers=("p",), need=need_geometric, **_FILLER)
def geometric(key: Array, input: Array, p: Any) -> Array:
    """Fill with the number of trials up to the first success of probability `p`."""
    need_geometric(key, input, p)
    return jax.random.geometric(key, p, input.shape).astype(input.dtype)


@op(name="cauchy", numbers=("median", "sigma"), need=need_cauchy, **_FILLER)
def cauchy(key: Array, input: Array, median: Any = 0.0, sigma: Any = 1.0) -> Array:
    """Fill with Cauchy numbers."""
    need_cauchy(key, input, median, sigma)
    noise = jax.random.cauchy(key, input.shape, input.dtype)
    return noise * cast(sigma, input.dtype) + cast(median, input.dtype)


@op(name="log_normal", numbers=("mean", "std"), need=need_log_normal, **_FILLER)
def log_normal(key: Array, input: Array, mean: Any = 1.0, std: Any = 2.0) -> Array:
    """Fill with numbers whose logarithm is normal."""
    need_log_normal(key, input, mean, std)
    noise = jax.random.normal(key, input.shape, input.dtype)
    return jnp.exp(noise * cast(std, input.dtype) + cast(mean, input.dtype))
