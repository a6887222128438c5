"""Python functions applied to elements, and tensors made on a storage."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest
from helpers.sameness import Log, same


def test_functions_of_elements() -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        tensors = [lib.tensor(x) for x in ([1.5, 2.0], [1, 2], [True, False], [1j, 2.0])]
        tensors.append(tensors[0].half())
        for t in tensors:
            for made in ("a", None, 2.5, True, 3, 1j, [1]):
                log.attempt(t.clone().apply_, lambda x, made=made: made)
                log.attempt(t.clone().map_, t, lambda x, y, made=made: made)
            log.attempt(t.clone().apply_, lambda x: lib.tensor([1, 2]))
            log.attempt(t.clone().map_, lib.ones(2, dtype=lib.bfloat16), lambda x, y: x)
        x, leaf = tensors[0], lib.ones(2, requires_grad=True)
        log.attempt(x.clone().map_, leaf, lambda a, b: a)
        log.attempt(x.clone().map2_, x, leaf, lambda a, b, c: a)


def test_tensors_on_a_storage() -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        warnings.filterwarnings("ignore", "TypedStorage is deprecated")
        x, whole = lib.tensor([1.0, 2.0, 3.0]), lib.tensor([1, 2])
        for make in (lib.tensor([]).new, lib.Tensor, lib.FloatTensor):
            made = make(x.storage())
            made[0] += 1
            log(x, made.data_ptr() == x.data_ptr(), make(x[1:].storage()).shape)
            log.attempt(make, whole.storage())
            log.attempt(make, -1)
            log.attempt(make, 2, -1)
        log(lib.tensor([]).new(x.untyped_storage()))


def test_bytes_of_a_storage_are_read_and_written() -> None:
    """Through the storage alone: versions of tensors do not count that."""

    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.arange(4.0)
        memory = x.untyped_storage()
        log(memory[6], memory[-1], list(memory), memory.is_pinned(), memory.cpu() is memory)
        other = memory.clone()
        log(other.tolist() == memory.tolist(), other == memory, other.fill_(256) is other)
        memory[3] = 64
        log(x, x._version, x.set_(other, 0, x.size(), x.stride()), x._version)
        log(other.copy_(torch.ones(4).untyped_storage()) is other, x, x._version)
        for index in (16, -17, "a"):
            log.attempt(memory.__getitem__, index)
        for index, value in ((16, 1), (0, 1.5), (0, 300)):
            log.attempt(memory.__setitem__, index, value)
        w = torch.ones(2, requires_grad=True)
        y = w * w
        w.untyped_storage().fill_(0)
        log(w, y.sum().backward())


def test_storages_that_no_tensor_had() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        make = torch.UntypedStorage
        log(make(3).nbytes(), make().nbytes(), make([1, 2]).tolist(), repr(make([1, 2])))
        log(repr(make()), make(2).fill_(7).tolist(), make(3, device="cpu").resizable())
        log(torch.empty(0).set_(make(8)).shape, torch.ones(2).storage().resizable())
        for wrong in ("a", 1.5, [1.5], [300]):
            with log.catch():
                make(wrong).tolist()


@pytest.mark.exhaustive
def test_memory_that_lies_by_columns_is_read_and_written_as_it_lies() -> None:
    """Deep copies of tensors that share it mixed up its elements."""

    @same
    def program(lib: Any, log: Log) -> None:
        for perm in ((2, 0, 1), (0, 2, 1), (2, 1, 0)):
            x = lib.arange(24.0, dtype=lib.float64).view(2, 3, 4).permute(perm) * 2
            part = x.detach()[1:, 0]
            log(x.stride(), x.untyped_storage().tolist(), part.untyped_storage().tolist())
            first, second = copy.deepcopy([x, part])
            second.add_(100)
            log(first, first.stride(), second, second.stride(), x)
            columns = copy.deepcopy({"x": x, "words": x.mT.view(lib.int64)})
            log(columns, columns["words"].stride())
            x.untyped_storage()[7] = 63
            log(x, part)
