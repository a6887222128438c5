"""`torch.lobpcg` beside live PyTorch: pairs, gradients and theirs, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from helpers.sameness import Log, same

import leafax


def matrices(lib: Any) -> tuple[Any, Any, Any]:
    """A matrix of rank 7, a positive definite one, and a guess."""
    half = (lib.arange(63.0).reshape(9, 7).double() * 7 % 11) / 11
    a = half @ half.mT
    return a, a / 20 + lib.eye(9).double() * 2, lib.eye(9, 3).double()


def without_signs(vectors: Any) -> Any:
    i = vectors.abs().max(-2, keepdim=True)[1]
    return vectors * vectors.gather(-2, i).sgn().conj()


def test_pairs() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        a, b, x = matrices(torch)
        for largest in (None, True, False):
            for by in (None, b):
                values, vectors = torch.lobpcg(a, 2, by, X=x, largest=largest, niter=-1)
                log(values.clone())
                if largest is not False:  # the smallest are repeated
                    log(without_signs(vectors))
        both = torch.lobpcg(torch.stack([a, a * 2]), X=torch.stack([x, x]), niter=-1)
        log(both[0].clone(), without_signs(both[1]))
        log(torch.lobpcg(a.to(torch.complex128), X=x.to(torch.complex128), niter=-1)[0].clone())
        for k, n in ((1, 2), (2, 1), (None, 2), (None, None)):
            log([t.shape for t in torch.lobpcg(a.float(), k, n=n)])


@pytest.mark.exhaustive
def test_gradients_and_theirs() -> None:
    """The eigenvalues that nobody asked for are repeated here: they give no NaN."""

    @same
    def program(torch: Any, log: Log) -> Any:
        a, _, x = matrices(torch)
        a.requires_grad_()
        values, vectors = torch.lobpcg(a, X=x[:, :2], niter=500, tol=1e-14)
        log(values.grad_fn.name(), vectors.grad_fn is values.grad_fn)
        weights = torch.arange(18.0).reshape(9, 2).double() / 18
        loss = (values**2).sum() + (without_signs(vectors) * weights).sum()
        (g,) = torch.autograd.grad(loss, a, create_graph=True)
        log(g.detach(), g.requires_grad)
        log.gradients(*torch.autograd.grad((g * weights[:, :1]).sum(), a))


def test_refusals() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        a, b, x = matrices(torch)
        for args, options in (
            ((a, 4), {}), ((a[:8],), {}), ((a, 3, b[:8, :8]), {}), ((a, 3), {"X": x[:8]}),
        ):  # fmt: skip
            log.attempt(torch.lobpcg, *args, **options)
        values, _ = torch.lobpcg(a.requires_grad_(), 3, b, X=x)
        log.attempt(values.sum().backward)
        z = a.detach().to(torch.complex128).requires_grad_()
        values, _ = torch.lobpcg(z, 1, X=x[:, :1].to(torch.complex128))
        log.attempt(values.abs().sum().backward)


def test_what_leafax_alone_refuses() -> None:
    # The pairs come from a decomposition of the whole matrix, so no iteration is there to be
    # watched.
    a = leafax.eye(6)
    with pytest.raises(
        NotImplementedError, match="with a `tracker` is not supported.*Leave it out"
    ):
        leafax.lobpcg(a, tracker=print)
    with pytest.raises(TypeError, match="float32, float64 and complex, not torch.float16"):
        leafax.lobpcg(a.half())
    with pytest.raises((KeyError, RuntimeError)):
        torch.lobpcg(torch.eye(6).half())
