"""Tensors print to the letter as in PyTorch."""

import importlib
import math
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

# Not `from leafax import ...`: these are tests of the file, whatever the facade exports.
_repr = importlib.import_module("leafax._tensor.printing")
Array = np.ndarray[Any, Any]

FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTS = ["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"]
DTYPES = [*FLOATS, *INTS, "bool", "complex64", "complex128"]
FLOAT8 = ["float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz"]


def numpy_dtype(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name) if name.startswith(("bf", "float8")) else name)


def to_torch(array: Array) -> torch.Tensor:
    name = array.dtype.name
    if name.startswith(("bf", "float8")):
        bits = np.ascontiguousarray(array).view(f"uint{8 * array.itemsize}")
        return torch.from_numpy(bits.reshape(array.shape)).view(getattr(torch, name))
    return torch.from_numpy(np.array(array))


def assert_same(array: Array, **options: Any) -> None:
    assert _repr.format_tensor(array, **options) == repr(to_torch(array))


def set_both(**options: Any) -> None:
    torch.set_printoptions(**options)
    _repr.set_printoptions(**options)


@pytest.fixture(autouse=True)
def default_options() -> Iterator[None]:
    yield
    set_both(profile="default")


VALUES = [
    [0.0], [1.0], [1.0, 2.0], [1.5], [-1.5, 2.25], [0.1, 1000.0], [0.001, 1.0], [1e-5], [1e8],
    [1e9], [2e8, 1.0], [0.0, 0.0], [-0.0], [math.nan], [math.inf, -math.inf], [math.nan, 1.0],
    [math.inf, 1.5], [1e10, math.nan], [-1e-6, 1.0], [12345.678], [99999.99996], [0.99999],
    [1e30, -1e30], [1.0, 1001.0], [1.0, 1000.0], [0.5, 500.0], [3.14159, 2.71828, -1.0],
]  # fmt: skip


@pytest.mark.parametrize("values", VALUES, ids=str)
@pytest.mark.parametrize("dtype", [*FLOATS, "complex64", "complex128"])
@pytest.mark.filterwarnings("ignore:overflow")
def test_floats(values: list[float], dtype: str) -> None:
    row = np.array(values, "complex128" if "complex" in dtype else "float64")
    row = row.astype(numpy_dtype(dtype))
    assert_same(row)
    assert_same(row[0:1].reshape(()))
    assert_same(np.stack([row, row]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape",
    [(), (1,), (7,), (40,), (3, 4), (1, 1, 1), (2, 3, 4), (2, 2, 2, 2), (30, 40), (1001,),
     (1000,), (2, 3, 400), (7, 7, 30), (0,), (0, 3), (2, 0, 5)],
    ids=str,
)  # fmt: skip
def test_dtypes_and_shapes(dtype: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    values = np.asarray(rng.normal(size=shape) * 50)
    if "complex" in dtype:
        values = values + 1j * np.asarray(rng.normal(size=shape))
    if dtype.startswith("u"):
        values = np.abs(values)
    assert_same(values.astype(numpy_dtype(dtype)))


@pytest.mark.parametrize("dtype", FLOAT8)
def test_float8(dtype: str) -> None:
    # 0-dim float8 tensors, and values that have no exact form, are left out.
    assert_same(np.array([1.0, 2.0, -4.0]).astype(numpy_dtype(dtype)))
    assert_same(np.array([[0.5, 1.75], [-0.25, 3.0]]).astype(numpy_dtype(dtype)))


OPTIONS: list[dict[str, Any]] = [
    {"precision": 2}, {"precision": 0}, {"precision": 10}, {"threshold": 5}, {"threshold": 0},
    {"threshold": 5, "edgeitems": 1}, {"threshold": 5, "edgeitems": 0}, {"linewidth": 20},
    {"linewidth": 200}, {"linewidth": 1}, {"profile": "short"}, {"profile": "full"},
    {"profile": "full", "precision": 1}, {"profile": "no such"}, {"sci_mode": True},
    {"sci_mode": False}, {"edgeitems": 0},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "int64", "complex64", "bool"])
@pytest.mark.parametrize("shape", [(), (3,), (50,), (4, 9), (40, 30), (0, 2), (3, 2, 7)], ids=str)
def test_options(options: dict[str, Any], dtype: str, shape: tuple[int, ...]) -> None:
    set_both(**options)
    assert_same((np.arange(math.prod(shape)).reshape(shape) * 1.5 - 3).astype(dtype))


def test_options_are_kept_as_in_torch() -> None:
    for options in OPTIONS:
        set_both(**options)
        assert _repr.get_printoptions() == torch._tensor_str.get_printoptions()


def test_printoptions_restores_after_an_exception() -> None:
    before = _repr.get_printoptions()
    with pytest.raises(KeyError), _repr.printoptions(precision=1, sci_mode=True):
        assert _repr.get_printoptions()["precision"] == 1
        raise KeyError
    assert _repr.get_printoptions() == before


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("default", ["float64", "float16", "bfloat16"])
def test_default_dtype(dtype: str, default: str) -> None:
    torch.set_default_dtype(getattr(torch, default))
    try:
        for values in ([], [1]):
            array = np.array(values).astype(numpy_dtype(dtype))
            assert_same(array, default_dtype=numpy_dtype(default))
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("size", [1, 3, 6, 7, 8, 9, 20, 2000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_suffixes(size: int, dtype: torch.dtype) -> None:
    x = torch.linspace(0, 1, size, dtype=dtype)
    leaf = x.clone().requires_grad_()
    assert _repr.format_tensor(x.numpy(), suffixes=["requires_grad=True"]) == repr(leaf)
    result = leaf + 0
    assert _repr.format_tensor(x.numpy(), suffixes=["grad_fn=<AddBackward0>"]) == repr(result)


def test_prefix_and_device() -> None:
    text = _repr.format_tensor(np.arange(2.0), prefix="Parameter(", device="cuda:0")
    assert text == "Parameter([0., 1.], device='cuda:0', dtype=torch.float64)"
    stacked = _repr.format_tensor(np.array([[1], [2]], "float32"), prefix="Parameter(")
    assert stacked == "Parameter([[1.],\n           [2.]])"


ARRAYS = st.sampled_from(["float32", "float64", "float16", "int64", "int8", "bool", "complex64"])


@pytest.mark.exhaustive
@settings(max_examples=300, deadline=None)
@given(hnp.arrays(ARRAYS, hnp.array_shapes(min_dims=0, max_side=9, max_dims=4)))
def test_any_array(array: Array) -> None:
    assert_same(array)


@settings(max_examples=150, deadline=None)
@given(
    hnp.arrays("float32", hnp.array_shapes(max_side=12), elements=st.floats(-2e4, 2e4, width=32)),
    st.integers(0, 8), st.integers(0, 60), st.integers(0, 4), st.integers(1, 120),
    st.sampled_from([None, True, False]),
)  # fmt: skip
def test_any_option(
    array: Array, precision: int, threshold: int, edge: int, width: int, sci: bool | None
) -> None:
    set_both(
        precision=precision, threshold=threshold, edgeitems=edge, linewidth=width, sci_mode=sci
    )
    assert_same(array)
