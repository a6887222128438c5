"""Other readings of the same memory: `view(dtype)`, storages, conjugate and negative bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from helpers.sameness import Log, same

import leafax

NAMES = ["uint8", "bool", "int16", "int32", "float16", "float32", "float64", "complex64"]


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", NAMES)
def test_bytes_as_another_dtype(name: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        own = getattr(torch, name)
        whole = torch.arange(32).reshape(2, 2, 8).to(own)
        layouts = [
            whole, whole[1:, :, 4:], whole.transpose(0, 1), whole.permute(2, 0, 1), whole[:, :0],
            whole[..., 1:], whole[0, 0, 0], whole.as_strided((2, 2), (1, 1)), whole[..., :3],
        ]  # fmt: skip
        for other in NAMES:
            for t in layouts:
                with log.catch():
                    seen = t.view(getattr(torch, other))
                    log(seen.shape, seen.stride(), seen.storage_offset(), seen._is_view())
                    log(seen.data_ptr() == t.data_ptr())
                    if other not in ("float16", "bool"):
                        log(torch.nan_to_num(seen) if seen.is_floating_point() else seen)


def test_writes_to_bytes() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.ones(2, 4)
        pairs, bits = x.view(torch.complex64), x[1:].view(dtype=torch.int32)
        pairs.mul_(2)
        log(x, pairs, bits._version)
        bits.zero_()
        log(x, pairs, bits)
        y = torch.ones(2, 4, requires_grad=True) * 2
        log(y.view(torch.complex64), y.view(torch.float32))
        with log.catch():
            x.view(torch.int8, 2)


@pytest.mark.filterwarnings("ignore:TypedStorage")
def test_storages() -> None:
    torch.ones(1).storage().size()  # PyTorch warns once

    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.arange(8.0).reshape(2, 4)
        part = x[1:, 1:]
        log(x.data_ptr() == x.reshape(-1).data_ptr(), part.data_ptr() - x.data_ptr())
        log(x.t().contiguous().data_ptr() == x.data_ptr())
        own, bytes_ = part._typed_storage(), part.untyped_storage()
        log(len(own), own.size(), own.nbytes(), own.dtype, own.element_size(), own[5])
        log(len(bytes_), bytes_.size(), bytes_.nbytes(), str(bytes_.device), bytes_.tolist())
        log(own.data_ptr() == x.data_ptr(), bytes_._cdata == x.untyped_storage()._cdata)
        log(torch.is_storage(own), isinstance(bytes_, torch.UntypedStorage), torch.is_storage(x))
        empty = torch.empty(0)
        log(empty.data_ptr(), empty._typed_storage().size(), empty.untyped_storage().nbytes())
        y = torch.zeros(3)
        y.set_(own, 1, (2, 2), (2, 1))
        y.mul_(10)
        log(y, y.storage_offset(), x)
        log(torch.zeros(1).set_(bytes_).shape, torch.zeros(1).set_(bytes_, 4, (2,), (1,)))
        with log.catch():
            torch.zeros(1, dtype=torch.int64).set_(own)


def test_the_warning_of_typed_storages() -> None:
    for lib in (torch, leafax):
        module = lib.storage if lib is torch else leafax._ops.creation.storage_objects
        lib.ones(1)._typed_storage()
        if lib is torch:
            module._reset_warn_typed_storage_removal()
        else:
            module._warned = False
        with pytest.warns(UserWarning, match="TypedStorage is deprecated. It will be removed"):
            assert lib.ones(2).storage().size() == 2


def test_bits() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([1 + 2j, 3 - 1j])
        conj = x.conj()
        views = [x, conj, conj.conj(), conj[:1], conj.reshape(2, 1), conj.imag, conj.real, conj * 1]
        for v in [*views, conj.detach(), conj.resolve_conj(), conj.imag.resolve_neg()]:
            log(v.is_conj(), v.is_neg())
            with log.catch():
                v.numpy()
            log(v.numpy(force=True).tolist())
        for v, other in ((conj, torch.float64), (conj.imag, torch.int8), (conj, torch.complex64)):
            with log.catch():
                v.view(other)


def test_dtypes_and_sizes_as_python_has_them() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        for kind in (int, float, bool, complex):
            log(torch.zeros(2, dtype=kind), torch.ones(2).to(kind), torch.tensor([1], dtype=kind))
            log(torch.full((1,), 1, dtype=kind), torch.ones_like(torch.ones(1), dtype=kind))
        log(torch.arange(3, dtype=float), torch.ones(2, 3).swapaxes(axis0=0, axis1=1).shape)
        for call in (
            lambda: torch.ones(1, dtype=str), lambda: torch.zeros(2, 4, 2**29, 2**29),
            lambda: torch.ones(2).resize_(2, 4, 2**29, 2**29), lambda: torch.broadcast_shapes(1.5),
            lambda: torch.ones(2).resize_(8, 8, 2**29, 2**29),
            lambda: torch.tensor_split(torch.ones(3), torch.ones(1, 1, dtype=torch.int64)),
        ):  # fmt: skip
            with log.catch():
                call()


@pytest.mark.parametrize("write", [
    "z.unfold(0, 2, 1).real[0].zero_()", "torch.view_as_real(z.unfold(0, 2, 1))[0].zero_()",
    "z.unfold(0, 2, 1).conj()[1].mul_(10)", "z.unfold(0, 2, 1).imag[1].mul_(10)",
    "z.as_strided((3, 2), (1, 1)).real.unfold(1, 1, 1)[0].mul_(10)",
    "torch.view_as_complex(r.as_strided((3, 2), (2, 1)))[1].mul_(10)",
    "i.unfold(0, 4, 2).view(torch.int64)[1, :1].mul_(10)",
    "i.unfold(0, 4, 2).view(torch.int16)[1, 1].zero_()",
    "i.unfold(0, 4, 2).view(torch.float32)[1].zero_()",
])  # fmt: skip
def test_writes_through_windows_of_other_elements(write: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        r = torch.arange(8.0)
        z, i = torch.complex(r[:4] * 1, r[4:] * 1), r.to(torch.int32)
        exec(write, {"torch": torch, "r": r, "z": z, "i": i})
        log(r, z, i)


def test_bytes_that_are_seen_as_bools_keep_their_values() -> None:
    # The other way round bools are 0 or 1: a byte that is written through a view of a bool tensor
    # as `uint8` is read back as 1, where PyTorch keeps it.
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.arange(8, dtype=torch.uint8)
        y = x.view(torch.bool)
        z = y.view(2, 4)[:, 2:].t().view(torch.int8)
        log(y, z, y.clone().view(torch.uint8), y.sum(), y.view(torch.int16))
        y[2] = True
        z[1, 0] = 9
        log(x, y, z)
        y.view(2, 4)[1] = False
        y.unfold(0, 2, 1)[0].logical_not_()
        log(x, y, z)


def test_memory_that_nobody_else_sees_is_taken_over() -> None:
    """Numbers read from bytes of a file are not made of bytes again in each program."""
    numbers = np.arange(6, dtype=np.float32)
    seen = leafax.from_numpy(numbers.view(np.uint8).copy()).view(leafax.float32).view(2, 3)
    held = leafax.nn.Parameter(seen)
    leafax.synchronize()
    shared = held * 2
    leafax.synchronize()
    assert held._store is not None  # by `seen`, too
    with leafax.no_grad():
        held.add_(1)
    assert seen.tolist() == (numbers + 1).reshape(2, 3).tolist()
    del seen
    leafax.explain(clear=True)
    assert (held * 2).tolist() == (2 * numbers + 2).reshape(2, 3).tolist()
    assert held._store is None and leafax.explain()[-1].nodes == 1
    held.sum().backward()
    assert held.grad.tolist() == [[1, 1, 1]] * 2 and shared.shape == held.shape
