"""Files, DLPack and types behave as in live PyTorch, in cases from PyTorch's own tests."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.sameness import same

import leafax


def _again(lib: Any, x: Any, **kwargs: Any) -> Any:
    file = io.BytesIO()
    lib.save(x, file)
    file.seek(0)
    return lib.load(file, **kwargs)


_TOGETHER: dict[str, Any] = {
    "a part": lambda t, x: [x, x[1:3]],
    "parts that overlap": lambda t, x: [x[:3], x[2:]],
    "another shape": lambda t, x: {"a": x, "b": x.view(2, 3)},
    "columns": lambda t, x: [x.view(2, 3).t(), x],
    "expanded": lambda t, x: [x[:1].expand(3), x],
    "detached": lambda t, x: (x, x.detach()),
    "one object twice": lambda t, x: [x, x],
    "one part alone": lambda t, x: [x[2:4]],
    "whole, by columns": lambda t, x: [x.view(2, 3).t()],
    "of one element": lambda t, x: [x[0], x[0].view(1)],
    "parts of nothing": lambda t, x: [x[:0], x.view(2, 3)[:, :0]],
    "halves": lambda t, x: (lambda h: [h, h[1:]])(x.half()),
    "bools": lambda t, x: (lambda h: [h, h[1:]])(x > 2),
    "a parameter and its data": lambda t, x: (lambda p: [p, p.detach()[1:]])(x.requires_grad_()),
}


@pytest.mark.parametrize("how", _TOGETHER)
@pytest.mark.parametrize("where", [None, "cpu"])
def test_what_shared_memory_shares_it_when_it_is_loaded(how: str, where: Any) -> None:
    def program(lib: Any, see: Any) -> None:
        read = _again(lib, _TOGETHER[how](lib, lib.arange(6.0)), map_location=where)
        tensors = list(read.values()) if isinstance(read, dict) else list(read)
        see(type(read).__name__, tensors[0] is tensors[-1])
        for t in tensors:
            see(t.detach(), t.stride(), t.storage_offset(), t.untyped_storage().nbytes())
            see(t._is_view(), t.is_leaf, t.requires_grad)
        with lib.no_grad():
            tensors[-1].fill_(1)
        see(*[t.detach() for t in tensors])

    same(program)


def test_a_loaded_tensor_lies_as_it_lay() -> None:
    def program(lib: Any, see: Any) -> None:
        images = lib.arange(96.0).reshape(2, 3, 4, 4).to(memory_format=lib.channels_last)
        turned = lib.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1).clone()
        for x in (images, turned, lib.ones(3).expand(2, 3), lib.arange(8.0)[::3]):
            y = _again(lib, x)
            see(y, y.stride(), y.is_contiguous())
        z = _again(lib, lib.tensor([1 + 2j]).conj())
        see(z, z.is_conj(), z._is_view(), z.conj().is_conj())
        see(_again(lib, z.imag).is_neg())

    same(program)


def test_the_program_of_what_is_saved_has_run_or_not() -> None:
    def program(lib: Any, see: Any) -> None:
        x = lib.arange(6.0).reshape(2, 3)
        v = x.t()
        x.add_(1)
        a, b = _again(lib, [v, x])
        a[0, 0] = 9
        see(a, b)
        w = (lib.ones(2, 2, requires_grad=True) * 2).t()
        see(_again(lib, w))
        with lib.inference_mode():
            read = _again(lib, [x, x[1:]])
            see(read[0].is_inference(), read[1].is_inference(), read[1])

    same(program)


def test_each_memory_is_asked_once_where_it_is_to_go() -> None:
    def program(lib: Any, see: Any) -> None:
        x, asked = lib.arange(3.0), []
        read = _again(lib, [x, x[1:]], map_location=lambda s, place: (asked.append(place), s)[1])
        read[1].zero_()
        see(asked, read)

    same(program)


def test_older_files_are_read() -> None:
    import json
    import zipfile

    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("data/0", np.arange(4, dtype="float32").tobytes())
        told = {"tensor": [0, "float32", [2, 2], True], "leaf": True}
        header = {"format": "leafax 1", "object": {"list": [told, told]}}
        archive.writestr("structure.json", json.dumps(header))
    file.seek(0)
    a, b = leafax.load(file)
    assert a is b and a.requires_grad and a.tolist() == [[0, 1], [2, 3]]


def test_files_that_cannot_be() -> None:
    def program(lib: Any, see: Any) -> None:
        see.attempt(lib.save, lib.ones(2), 3)
        see.attempt(lib.save, lib.ones(2), "/there/is/no/such/folder/x.pt")
        see.attempt(lib.save, lib.ones(2), Path("/there/is/no/such/folder/x.pt"))
        see.attempt(lib.load, 3)
        see.attempt(lib.load, "/there/is/no/such/file.pt")

    same(program)


class _Wrapped:
    """An object that has DLPack's methods and nothing else."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.tensor.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> Any:
        return self.tensor.__dlpack_device__()


def test_tensors_of_what_has_dlpacks_methods() -> None:
    def program(lib: Any, see: Any) -> None:
        for made in (lib.arange(3.0), lib.arange(4).reshape(2, 2), lib.ones(2).half()):
            for make in (lib.tensor, lib.as_tensor, lib.asarray, lib.from_dlpack):
                see.attempt(make, _Wrapped(made))
        see(lib.tensor(_Wrapped(lib.arange(3)), dtype=lib.float64, requires_grad=True))
        found = lib.from_dlpack(np.arange(6).reshape(2, 3).T)
        see(found, found.stride())

    same(program)


def test_what_dlpack_refuses() -> None:
    def program(lib: Any, see: Any) -> None:
        x = lib.ones(3)
        for stream in (0, 1, "a", 1.5, lib):
            see.attempt(lambda stream=stream: x.__dlpack__(stream=stream))
        see(type(x.__dlpack__(stream=-1)).__name__, type(x.__dlpack__(stream=None)).__name__)
        see.attempt(lib.ones(2, requires_grad=True).__dlpack__)
        see.attempt(lib.tensor([1j]).conj().__dlpack__)
        see.attempt(lambda: x.__dlpack__(other=1))
        see.attempt(lib.utils.dlpack.to_dlpack, 3)

    same(program)


def test_pythons_types_stand_for_dtypes() -> None:
    def program(lib: Any, see: Any) -> None:
        see(str(lib.finfo(float)), str(lib.finfo(complex)), str(lib.iinfo(int)))
        see(lib.can_cast(float, int), lib.can_cast(int, float), lib.can_cast(bool, lib.int8))
        see(lib.promote_types(int, float), lib.promote_types(lib.float16, complex))
        for fn, *args in (
            (lib.finfo, int), (lib.iinfo, float), (lib.iinfo, bool), (lib.finfo, "a"),
            (lib.iinfo, 1), (lib.can_cast, 1, lib.float32), (lib.can_cast, lib.float32, None),
            (lib.promote_types, "a", lib.int8), (lib.promote_types, lib.int8, 3),
        ):  # fmt: skip
            see.attempt(fn, *args)

    same(program)


_INDICES: list[Any] = [0, slice(1, None), [0], ..., None, True]


@pytest.mark.quick(18)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "complex64", "bool", "int8"])
@pytest.mark.parametrize(
    "value",
    [1e300, -1e300, 3.5e38, 10**38 * 5, float("nan"), float("inf"), 1e300j, complex(1, 0),
     complex(1e300, 0), complex(1, 2), np.float64(1e300), np.complex128(1)],
)  # fmt: skip
def test_numbers_that_are_written_fit(dtype: str, value: Any) -> None:
    def program(lib: Any, see: Any) -> None:
        places = [*_INDICES, lib.tensor([0]), lib.tensor([True, False, False]), lib.tensor(True)]
        for place in places:
            x = lib.zeros(3, dtype=getattr(lib, dtype))
            see.attempt(x.__setitem__, place, value)
            see(x.float() if dtype == "bfloat16" else x)

    same(program)


def test_powers_by_numbers_beyond_the_dtype() -> None:
    def program(lib: Any, see: Any) -> None:
        for x in (lib.tensor([1.0, 0.5, 2.0]), lib.tensor([1.0, 0.5]).half()):
            for n in (1e300, -1e300, 1e39):
                see(x.pow(n), x**n, x.clone().pow_(n))
        see.attempt(lib.tensor([1, 2], dtype=lib.int8).pow, 300)

    same(program)


def test_named_results_are_made_of_sequences() -> None:
    def program(lib: Any, see: Any) -> None:
        cls = lib.return_types.max
        for given in ((1, 2), [3, 4], "ab", (n for n in (5, 6))):
            made = cls(given)
            see(made.values, made.indices, len(made))
        see(lib.return_types.linalg_svd((1, 2, 3)).Vh, lib.return_types.histogram((1, 2)).hist)
        for wrong in ((1, 2, 3), (1,), 1):
            see.attempt(cls, wrong)
        out = cls((lib.empty(0), lib.empty(0, dtype=lib.int64)))
        see(lib.max(lib.tensor([[1.0, 3.0]]), 1, out=out).values, out.indices)

    same(program)


def test_integers_are_compared_as_wide_ones() -> None:
    def program(lib: Any, see: Any) -> None:
        def close(a: Any, b: Any, kind: str, **kwargs: Any) -> None:
            x, y = (lib.tensor(n, dtype=getattr(lib, kind)) for n in (a, b))
            see.attempt(lambda: lib.testing.assert_close(x, y, **kwargs))

        close([1, 2], [2, 2], "uint8")
        close([0, 5], [255, 2], "uint8")
        close([2, 1], [1, 2], "uint8", rtol=0, atol=1)
        close([-128], [127], "int8")
        close([2, 1], [1, 2], "uint16")
        close([-(2**31)], [2**31 - 1], "int32")
        close(100, 200, "uint8")
        with see.catch():
            lib.testing.assert_close(lib.tensor([1, 2]), lib.tensor([1.5, 2]), check_dtype=False)

    same(program)


def test_differences_that_wrap_around_are_no_equality() -> None:
    x, y = leafax.tensor([2**63 - 1]), leafax.tensor([-1])
    with pytest.raises(AssertionError, match="not equal"):
        leafax.testing.assert_close(x, y)


def test_assert_close_of_texts_and_messages() -> None:
    def program(lib: Any, see: Any) -> None:
        close = lib.testing.assert_close
        for a, b in ((b"a", b"a"), (b"a", b"b"), (["a"], ["a"]), ({"a": "b"}, {"a": "b"})):
            see.attempt(close, a, b)
        for msg in ("mine", lambda text: text.upper(), 3):
            with see.catch():
                close([lib.ones(2)], [lib.zeros(2)], msg=msg)
            with see.catch():
                close(["a"], ["a"], msg=msg)

    same(program)


def test_arrays_where_a_tensor_is_due() -> None:
    def program(lib: Any, see: Any) -> None:
        f, array, labels = lib.nn.functional, np.ones((2, 2)), lib.tensor([0, 1])
        see.attempt(f.relu, array)
        see.attempt(f.layer_norm, array, (2,))
        see.attempt(f.max_pool2d, array, 1)
        see.attempt(f.cross_entropy, array, labels)
        see.attempt(f.cross_entropy, lib.ones(2, 2), np.array([0, 1]))
        see.attempt(f.linear, lib.ones(2, 2), lib.ones(2, 2), np.ones(2))
        see.attempt(lib.einsum, "ij->ji", array)
        for name in ("grad", "data"):
            see.attempt(setattr, lib.ones(2), name, array)

    same(program)


def test_classes_that_are_no_dtypes() -> None:
    def program(lib: Any, see: Any) -> None:
        x = lib.ones(2, 3)
        see.attempt(x.view, np.array([3, 2]))
        for kind in (np.float64, str):
            see.attempt(x.to, kind)
            see.attempt(lambda kind=kind: x.to(dtype=kind))
            see.attempt(x.type, kind)
        see(x.type(lib.DoubleTensor), x.to(float))

    same(program)


def test_unsigned_integers_of_64_bits() -> None:
    def program(lib: Any, see: Any) -> None:
        for n in (-1, 2**64, -(2**70)):
            see.attempt(lambda n=n: lib.tensor([n], dtype=lib.uint64))
        see(lib.tensor([2**64 - 1, 0], dtype=lib.uint64).tolist())

    same(program)


def test_masks_of_another_shape_in_place() -> None:
    def program(lib: Any, see: Any) -> None:
        for shape in ((3,), (2, 3)):
            for value in (1, lib.tensor(1.0)):
                x = lib.zeros(shape)
                see.attempt(x.masked_fill_, lib.tensor([True, False]), value)
                see.attempt(x.masked_fill, lib.tensor([True, False]), value)

    same(program)


def test_autocast_by_the_names_of_one_device() -> None:
    def program(lib: Any, see: Any) -> None:
        with pytest.warns(DeprecationWarning) as warned:
            see(lib.is_autocast_cpu_enabled(), lib.get_autocast_cpu_dtype())
            see(lib.get_autocast_gpu_dtype())
            with lib.autocast("cpu", dtype=lib.float16):
                see(lib.is_autocast_cpu_enabled(), lib.get_autocast_cpu_dtype())
            before = lib.get_autocast_dtype("cpu"), lib.get_autocast_dtype("cuda")
            try:
                lib.set_autocast_cpu_enabled(True)
                lib.set_autocast_cpu_dtype(lib.float16)
                lib.set_autocast_gpu_dtype(lib.bfloat16)
                see(lib.is_autocast_enabled("cpu"), lib.get_autocast_dtype("cpu"))
                see(lib.get_autocast_dtype("cuda"), (lib.ones(2, 2) @ lib.ones(2, 2)).dtype)
            finally:
                lib.set_autocast_cpu_enabled(False)
                lib.set_autocast_cpu_dtype(before[0])
                lib.set_autocast_gpu_dtype(before[1])
        see([str(w.message).split(" (Triggered")[0] for w in warned])

    same(program)


def test_a_pickled_tensor_lies_as_it_lay() -> None:
    def program(lib: Any, see: Any) -> None:
        images = lib.arange(96.0).reshape(2, 3, 4, 4).to(memory_format=lib.channels_last)
        columns = lib.arange(6).reshape(2, 3).t()
        for x in (images, columns, lib.ones(2, 3).t().requires_grad_()):
            y = pickle.loads(pickle.dumps(x))
            see(y, y.stride(), y.is_contiguous())

    same(program)
