"""Names that PyTorch removed or deprecated, with its errors and warnings."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from ..._core.warn_once import warn_once

_SINCE = "This function was deprecated since version 1.9 and is now removed."


def solve(input: Any, A: Any, *, out: Any = None) -> Any:  # noqa: N803
    """Raise, since PyTorch removed it: use `linalg.solve`."""
    raise RuntimeError(
        f"{_SINCE} `torch.solve` is deprecated in favor of `torch.linalg.solve`. "
        "`torch.linalg.solve` has its arguments reversed and does not return the LU "
        "factorization.\n\n"
        "To get the LU factorization see `torch.lu`, which can be used with `torch.lu_solve` or "
        "`torch.lu_unpack`.\n"
        "X = torch.solve(B, A).solution should be replaced with:\n"
        "X = torch.linalg.solve(A, B)"
    )


def lstsq(input: Any, A: Any, *, out: Any = None) -> Any:  # noqa: N803
    """Raise, since PyTorch removed it: use `linalg.lstsq`."""
    raise RuntimeError(
        f"{_SINCE} `torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`.\n"
        "`torch.linalg.lstsq` has reversed arguments and does not return the QR decomposition in "
        "the returned tuple (although it returns other information about the problem).\n\n"
        "To get the QR decomposition consider using `torch.linalg.qr`.\n\n"
        "The returned solution in `torch.lstsq` stored the residuals of the solution in the "
        "last m - n columns of the returned value whenever m > n. In torch.linalg.lstsq, "
        "the residuals are in the field 'residuals' of the returned named tuple.\n\n"
        "The unpacking of the solution, as in\n"
        "X, _ = torch.lstsq(B, A).solution[:A.size(1)]\n"
        "should be replaced with:\n"
        "X = torch.linalg.lstsq(A, B).solution"
    )


def symeig(input: Any, eigenvectors: bool = False, upper: bool = True, *, out: Any = None) -> Any:
    """Raise, since PyTorch removed it: use `linalg.eigh`."""
    raise RuntimeError(
        f"{_SINCE} The default behavior has changed from using the upper triangular portion of "
        "the matrix by default to using the lower triangular portion.\n\n"
        "L, _ = torch.symeig(A, upper=upper) should be replaced with:\n"
        "L = torch.linalg.eigvalsh(A, UPLO='U' if upper else 'L')\n\n"
        "and\n\n"
        "L, V = torch.symeig(A, eigenvectors=True) should be replaced with:\n"
        "L, V = torch.linalg.eigh(A, UPLO='U' if upper else 'L')"
    )


def eig(self: Any, eigenvectors: bool = False, *, e: Any = None, v: Any = None) -> Any:
    """Raise, since PyTorch removed it: use `linalg.eig`."""
    raise RuntimeError(
        f"{_SINCE} `torch.linalg.eig` returns complex tensors of dtype `cfloat` or `cdouble` "
        "rather than real tensors mimicking complex tensors.\n\n"
        "L, _ = torch.eig(A) should be replaced with:\n"
        "L_complex = torch.linalg.eigvals(A)\n\n"
        "and\n\n"
        "L, V = torch.eig(A, eigenvectors=True) should be replaced with:\n"
        "L_complex, V_complex = torch.linalg.eig(A)"
    )


def matrix_rank(input: Any, tol: Any = None, symmetric: bool = False, *, out: Any = None) -> Any:
    """Raise, since PyTorch removed it: use `linalg.matrix_rank`."""
    raise RuntimeError(
        f"{_SINCE}\nPlease use the `torch.linalg.matrix_rank` function instead. The parameter "
        "'symmetric' was renamed in `torch.linalg.matrix_rank()` to 'hermitian'."
    )


_REINFORCE = """reinforce() was removed.
Use torch.distributions instead.
See https://pytorch.org/docs/main/distributions.html

Instead of:

probs = policy_network(state)
action = probs.multinomial()
next_state, reward = env.step(action)
action.reinforce(reward)
action.backward()

Use:

probs = policy_network(state)
# NOTE: categorical is equivalent to what used to be called multinomial
m = torch.distributions.Categorical(probs)
action = m.sample()
next_state, reward = env.step(action)
loss = -m.log_prob(action) * reward
loss.backward()
"""


def reinforce(self: Any, reward: Any) -> None:
    """Raise, since PyTorch removed it."""
    raise RuntimeError(_REINFORCE)


def resize(self: Any, *sizes: int) -> Any:
    """Return a copy in another shape of as many elements; deprecated for `reshape`."""
    return _resized(self, sizes, "resize")


def resize_as(self: Any, tensor: Any) -> Any:
    """Return a copy in the shape of `tensor`; deprecated for `reshape_as`."""
    return _resized(self, tuple(tensor.shape), "resize_as")


def _resized(self: Any, sizes: tuple[int, ...], name: str) -> Any:
    warnings.warn(f"non-inplace {name} is deprecated", stacklevel=3)
    count = 1
    for n in sizes:
        count *= n
    if self.numel() != count:
        raise RuntimeError(
            f"requested resize to {_by(sizes)} ({count} elements in total), but the given tensor "
            f"has a size of {_by(self.shape)} ({self.numel()} elements). autograd's resize can "
            "only change the shape of a given tensor, while preserving the number of elements. "
        )
    return self.reshape(sizes).clone()


def _by(sizes: Any) -> str:
    return "x".join(map(str, sizes))


FUNCTIONS = {f.__name__: f for f in (solve, lstsq, symeig, eig, matrix_rank)}
METHODS = {f.__name__: f for f in (solve, lstsq, symeig, eig, reinforce, resize, resize_as)}


_SOON = "will be removed in a future PyTorch release.\n"
DEPRECATED = {
    "cholesky": (
        f"torch.cholesky is deprecated in favor of torch.linalg.cholesky and {_SOON}"
        "L = torch.cholesky(A)\nshould be replaced with\nL = torch.linalg.cholesky(A)\nand\n"
        "U = torch.cholesky(A, upper=True)\nshould be replaced with\n"
        "U = torch.linalg.cholesky(A).mH\n"
        "This transform will produce equivalent results for all valid (symmetric positive "
        "definite) inputs."
    ),
    "qr": (
        f"torch.qr is deprecated in favor of torch.linalg.qr and {_SOON}"
        "The boolean parameter 'some' has been replaced with a string parameter 'mode'.\n"
        "Q, R = torch.qr(A, some)\nshould be replaced with\n"
        "Q, R = torch.linalg.qr(A, 'reduced' if some else 'complete')"
    ),
    "lu": (
        "torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex "
        f"and {_SOON}"
        "LU, pivots = torch.lu(A, compute_pivots)\nshould be replaced with\n"
        "LU, pivots = torch.linalg.lu_factor(A, compute_pivots)\nand\n"
        "LU, pivots, info = torch.lu(A, compute_pivots, get_infos=True)\nshould be replaced with\n"
        "LU, pivots, info = torch.linalg.lu_factor_ex(A, compute_pivots)"
    ),
    "lu_solve": (
        f"torch.lu_solve is deprecated in favor of torch.linalg.lu_solveand {_SOON}"
        "Note that torch.linalg.lu_solve has its arguments reversed.\n"
        "X = torch.lu_solve(B, LU, pivots)\nshould be replaced with\n"
        "X = torch.linalg.lu_solve(LU, pivots, B)"
    ),
    "triangular_solve": (
        "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangularand "
        f"{_SOON}torch.linalg.solve_triangular has its arguments reversed and does not return a "
        "copy of one of the inputs.\nX = torch.triangular_solve(B, A).solution\n"
        "should be replaced with\nX = torch.linalg.solve_triangular(A, B)."
    ),
}

_CHECKED_FIRST = ("triangular_solve",)  # what is refused does not warn


def warned(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return `fn`, which warns once and names its successor."""

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        if name in _CHECKED_FIRST:
            try:
                made = fn(*args, **kwargs)
            except NotImplementedError:  # by its kernel, after the checks
                warn_once(DEPRECATED[name])
                raise
            warn_once(DEPRECATED[name])
            return made
        warn_once(DEPRECATED[name])
        return fn(*args, **kwargs)

    return call
