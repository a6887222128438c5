"""Conjugate and negative views, and what else a tensor's memory tells."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from helpers.sameness import Log, same

VIEWS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda c: c,
    "conj": lambda c: c.conj(),
    "conj twice": lambda c: c.conj().conj(),
    "real of conj": lambda c: c.conj().real,
    "imag of conj": lambda c: c.conj().imag,
    "part of imag": lambda c: c.conj().imag[1:],
    "view of conj": lambda c: c.conj().view(2, 1),
    "H": lambda c: c.view(2, 1).H,
    "neg": lambda c: c._neg_view(),
    "neg of conj": lambda c: c.conj()._neg_view(),
    "conj, copied": lambda c: c.conj().clone(),
    "conj, detached": lambda c: c.conj().detach(),
}


@pytest.mark.parametrize("how", VIEWS)
def test_bits(how: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        c = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
        x = VIEWS[how](c)
        log(x.is_conj(), torch.is_conj(x), x.is_neg(), torch.is_neg(x), x._is_view())
        log(x.resolve_conj() is x, x.resolve_neg() is x, x.grad_fn and x.grad_fn.name())
        resolved = x.resolve_conj().resolve_neg()
        log(resolved)
        log.attempt(lambda: bool(x.detach().numpy().any()))
        log(bool(x.numpy(force=True).any()))
        if x.is_complex():
            with log.catch():
                torch.view_as_real(x.detach())
        if x.requires_grad and x.grad_fn is not None:
            (x * x.detach()).abs().sum().backward()
            log.gradients(c.grad)


def test_writes_through_negative_views() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([1.0, 2.0])
        x._neg_view().add_(3)
        torch._neg_view(x)[1:].mul_(2)
        log(x)


def test_storage() -> None:
    # Each call of `untyped_storage()` makes an object here, equal to the others; PyTorch's is the
    # same one as long as the memory lives.
    @same
    def program(torch: Any, log: Log) -> Any:
        warnings.simplefilter("ignore")  # typed storages are to be removed from PyTorch
        x = torch.arange(6.0)
        part = x[2:].detach()
        kept = part.storage()
        log(type(kept).__name__, len(kept), kept.size(), kept.nbytes(), kept.element_size())
        log(kept[2], kept.tolist(), str(kept.dtype).split(".")[1], str(kept.device))
        log(kept.data_ptr() == x.storage().data_ptr(), len(x.clone().storage()))
        raw = part.untyped_storage()
        log(type(raw).__name__, len(raw), raw.size(), raw.nbytes(), str(raw.device))
        log(raw.data_ptr() == x.untyped_storage().data_ptr())


ALIKE: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "a part and a whole": lambda t: (t.randn(5)[:4].detach(), t.ones(4)),
    "a whole and a part": lambda t: (t.randn(4), t.ones(5)[:4].detach()),
    "transposed": lambda t: (t.randn(2, 3).t(), t.ones(3, 2)),
    "conjugated": lambda t: (t.randn(2) * 1j, (t.ones(2) * 1j).conj()),
    "both conjugated": lambda t: ((t.randn(2) * 1j).conj(), (t.ones(2) * 1j).conj()),
    "negated": lambda t: (t.randn(2)._neg_view(), t.ones(2)),
    "empty": lambda t: (t.tensor([1.0]).as_strided((0,), (1,), 1), t.ones(3)[2:2].detach()),
    "empty, other offset": lambda t: (
        t.tensor([1.0]).as_strided((0,), (1,), 1), t.tensor([1.0]).as_strided((0,), (1,), 2)
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", ALIKE)
def test_tangents_are_copied_to_lie_as_the_primal(how: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        forward_ad = torch.autograd.forward_ad
        primal, tangent = ALIKE[how](torch)
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(primal, tangent)
            kept = forward_ad.unpack_dual(dual).tangent
            log(kept is tangent, kept.stride(), kept.untyped_storage().nbytes())
            log(kept.resolve_conj().resolve_neg())
            if how == "a part and a whole":
                log(forward_ad.unpack_dual(dual.as_strided((4,), (1,), 0)).tangent)


def test_forward_mode_can_be_switched_off() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        forward_ad = torch.autograd.forward_ad
        log(forward_ad._is_fwd_grad_enabled())
        with forward_ad.dual_level():
            x = forward_ad.make_dual(torch.ones(2), torch.full((2,), 3.0))
            torch._C._set_fwd_grad_enabled(False)
            log(forward_ad._is_fwd_grad_enabled())
            off = x * 2
            with forward_ad._set_fwd_grad_enabled(True):
                log(forward_ad._is_fwd_grad_enabled())
                on = x * 2
            log(forward_ad._is_fwd_grad_enabled())
            torch._C._set_fwd_grad_enabled(True)
            log(forward_ad.unpack_dual(off).tangent, forward_ad.unpack_dual(on).tangent)


def test_cached_tensors_are_remembered() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        own = torch._C
        x = torch.ones(2)
        log(own._is_cached_tensor(x))
        own._set_cached_tensors_enabled(True)
        try:
            log(own._add_cached_tensor(x), own._is_cached_tensor(x))
            own._add_cached_tensor(x)
            log(own._is_cached_tensor(x.detach()), own._is_cached_tensor(torch.ones(2)))
            own._set_cached_tensors_enabled(False)
            log(own._is_cached_tensor(x))
            own._set_cached_tensors_enabled(True)
            log(own._is_cached_tensor(x), own._remove_cached_tensor(torch.ones(2)))
            own._remove_cached_tensor(x)
            log(own._is_cached_tensor(x))
        finally:
            own._set_cached_tensors_enabled(False)


def test_autograd_names_the_library() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        log(torch.autograd.torch is torch)


def test_factorizations_are_there() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        log(torch._C.has_lapack)


def test_gradcheck_without_elements() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.rand([0, 1], dtype=torch.complex128, requires_grad=True)
        diagonal = lambda x: torch.diagonal(x, offset=0)  # noqa: E731
        log(torch.autograd.gradcheck(diagonal, (x,), check_forward_ad=True))


@pytest.mark.parametrize("made", ["lib._neg_view(x)", "lib.complex(x, x - 2).conj()"])
def test_values_are_read_through_the_bits(made: str) -> None:
    """Ops that read values in NumPy read those of the view, not those in memory."""

    @same
    def program(lib: Any, log: Log) -> None:
        x = lib.tensor([[3.0, 1.0], [0.0, 1.0]], dtype=lib.float64)
        y = eval(made, {"lib": lib, "x": x})
        log(lib.equal(y, y.clone()), y.nonzero(), lib.argwhere(y), *y.nonzero(as_tuple=True))
        log(lib.nonzero_static(y, size=2), lib.repeat_interleave(y, 2, 0))
        if not y.is_complex():
            log(y.unique(), y.unique_consecutive(), y.histc(4), *lib.histogram(y, 2))
            log(lib.histogramdd(y, [2, 2])[0])


def test_a_strided_copy_is_of_the_storage() -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        a = lib.arange(12.0, dtype=lib.float64).view(3, 4)
        log(lib.as_strided_copy(a.t(), (3,), (1,)), lib.as_strided_copy(a[1:], (3,), (1,)))
        log(lib.as_strided_copy(a[1:], (3,), (1,), 0))
        log(lib.as_strided_copy(a[:, ::2], (2, 3), (1, 2), 1))
