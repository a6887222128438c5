"""Functions that make tensors: `out=`, and the arguments that all of them take."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from helpers.sameness import Log, same

import leafax

FACTORIES: dict[str, Any] = {
    "zeros": lambda t, **k: t.zeros(2, 3, **k),
    "ones": lambda t, **k: t.ones((2, 3), **k),
    "full": lambda t, **k: t.full((2, 3), 2, **k),
    "arange": lambda t, **k: t.arange(6, **k),
    "range": lambda t, **k: t.range(0, 5, **k),
    "linspace": lambda t, **k: t.linspace(0, 10, 6, **k),
    "logspace": lambda t, **k: t.logspace(0, 5, 6, 2, **k),
    "eye": lambda t, **k: t.eye(2, 3, **k),
    "randint": lambda t, **k: t.randint(1, (2, 3), **k),
    "randperm": lambda t, **k: t.randperm(6, **k),
    "rand": lambda t, **k: t.rand(2, 3, **k),
    "randn": lambda t, **k: t.randn(2, 3, **k),
    "empty": lambda t, **k: t.empty(2, 3, **k),
}
OUTS: dict[str, Any] = {
    "fits": lambda t: {"out": t.ones(2, 3) * 7},
    "empty": lambda t: {"out": t.empty(0)},
    "resized": lambda t: {"out": t.ones(5)},
    "another dtype": lambda t: {"out": t.empty(0, dtype=t.int64)},
    "the same dtype": lambda t: {"out": t.empty(0), "dtype": t.float32},
    "not the dtype": lambda t: {"out": t.empty(0), "dtype": t.float64},
    "requires grad": lambda t: {"out": t.empty(0, requires_grad=True)},
    "shall require grad": lambda t: {"out": t.empty(0), "requires_grad": True},
    "a view": lambda t: {"out": t.ones(6, 2)[:, 0]},
    "columns": lambda t: {"out": t.ones(3, 2).t()},
    "none": lambda t: {"out": None, "device": "cpu", "layout": t.strided},
}


@pytest.mark.parametrize("name", FACTORIES)
def test_out(name: str) -> None:
    @same
    def program(t: Any, log: Log) -> Any:
        random = name.startswith("rand")
        for how, make in OUTS.items():
            if random and how in ("resized", "a view", "columns", "none", "the same dtype"):
                continue  # these compile for long
            named = make(t)
            out = named["out"]
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                with log.catch():
                    r = FACTORIES[name](t, **named)
                    log(how, r is out, str(r.dtype), r.shape, r.stride(), r.requires_grad)
                    log(r._version, "drawn" if random or name == "empty" else r.tolist())
            words = [str(w.message).partition(" (Trig")[0] for w in told]
            log([w for w in words if "jit" not in w and "torch.range" not in w])


def test_random_numbers_are_written() -> None:
    import leafax

    for name in ("rand", "randn", "randperm"):
        out = leafax.zeros(2, 3)
        FACTORIES[name](leafax, out=out)
        assert out.unique().numel() == 6


REFUSED: dict[str, Any] = {
    "out of a list": lambda t: t.zeros(2, out=[1]),
    "zeros": lambda t: t.zeros(2, foo=1),
    "ones": lambda t: t.ones(2, generator=None),
    "zeros_like": lambda t: t.zeros_like(t.ones(2), out=t.ones(2)),
    "out of tril_indices": lambda t: t.tril_indices(2, 2, out=None),
    "triu_indices require grad": lambda t: t.triu_indices(2, 2, requires_grad=True),
    "triangles of floats": lambda t: t.tril_indices(2, 2, dtype=t.float64),
    "triangles of bytes": lambda t: t.triu_indices(2, 2, dtype=t.uint8),
    "frequencies of ints": lambda t: t.fft.fftfreq(4, dtype=t.int32),
    "complex frequencies": lambda t: t.fft.rfftfreq(4, dtype=t.complex64),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    @same
    def program(t: Any, log: Log) -> Any:
        log.attempt(REFUSED[name], t)


def test_arguments() -> None:
    @same
    def program(t: Any, log: Log) -> Any:
        for f in (t.tril_indices, t.triu_indices):
            log(f(3, 4, device="cpu", layout=t.strided, pin_memory=False, requires_grad=False))
            log(f(3, 4, 1, dtype=t.int32, device=t.device("cpu")), f(3, 3, dtype=None))
        for f in (t.fft.fftfreq, t.fft.rfftfreq):
            log(f(5, d=2.0, device="cpu", layout=t.strided), f(4, requires_grad=True))
            log(f(4, out=t.empty(0, dtype=t.float64)), f(4, dtype=t.float64))
        out = t.ones(6)
        view = out[2:]
        t.arange(6, out=out)
        log(out, view, view._version)


@pytest.mark.parametrize("make", ["tensor", "as_tensor", "from_numpy", "asarray"])
def test_arrays_that_run_backwards_are_refused(make: str) -> None:
    said = []
    for lib in (leafax, torch):
        with pytest.raises(ValueError) as caught:
            getattr(lib, make)(np.arange(6.0)[::-2])
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_sizes_are_ints() -> None:
    class Reflected:
        def __radd__(self, other: Any) -> int:
            return 42

    for made in (
        lambda t: (1,) + t.Size([2]), lambda t: t.Size([2]) + (1,), lambda t: t.Size([True]),
        lambda t: t.Size(t.tensor([1, 2])), lambda t: t.Size([np.int64(3)]),
        lambda t: copy.deepcopy(pickle.loads(pickle.dumps(t.Size([2, 3])))),
        lambda t: t.Size([1.5]), lambda t: t.Size(["a"]), lambda t: t.Size([t.ones(1)]),
        lambda t: t.Size([2]) + [1],
        lambda t: t.Size([2]) + 3,
        lambda t: t.Size([2]) * 1.5,
        lambda t: t.Size([2]) + Reflected(),
    ):  # fmt: skip
        said = []
        for lib in (leafax, torch):
            try:
                said.append((repr(made(lib)), type(made(lib)) is lib.Size))
            except TypeError as error:
                said.append(str(error))
        assert said[0] == said[1]


def test_a_dtype_that_is_none_is_named() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        for wrong in (3, [1], "a"):
            with pytest.raises(TypeError) as e:
                torch.tensor([1.0], dtype=wrong)
            log(str(e.value))
        log(torch.tensor([1], dtype=float).dtype == torch.float64)


MADE = (
    "t.zeros(-1)", "t.ones(2, -1)", "t.empty(-1)", "t.empty_strided((-1,), (1,))",
    "t.empty_strided((2,), (-1,))", "t.ones(3).new_empty_strided((2, 2), (1, -1))",
    "t.ones(3).as_strided((-1,), (1,))", "t.ones(3).as_strided((-1,), (1,), -1)", "t.zeros()",
    "t.zeros(True)", "t.zeros((True, 2))", "t.zeros(2, None)", "t.zeros(t.tensor(2.0))",
    "t.zeros(None)", "x.new_zeros()", "x.new_ones(True)", "x.new_full(2, 3)",
    "x.new_full((2,), 1j)", "t.full_like(x, 1j)", "t.full((2,), np.int16(3))", "t.eye(True)",
    "t.arange(end=3)", "t.arange(start=1)", "t.arange(1, end=4, step=2)", "t.arange(1j)",
    "t.arange(0, 3, dtype=t.complex64)", "t.arange(1e-38, 3e38)", "t.linspace(0, 1j, 3)",
    "t.linspace(t.tensor(1j), 5, 3)", "t.linspace(0, 1j, 3, dtype=t.float32)",
    "t.linspace(t.tensor([0.0]), 1, 2)", "t.linspace(0, 1, 3, dtype=t.bool)",
    "t.logspace(0, 1j, 3)", "t.logspace(t.tensor(0.0), t.tensor(1j), 3)", "t.linspace(0, 1, 2.5)",
    "t.block_diag()", "t.meshgrid()", "t.meshgrid(1, 2)", "t.cartesian_prod()",
    "t.cartesian_prod(1)", "t.combinations(x, -1)", "t.combinations(x, 4).stride()",
    "t.cat([t.zeros(0), t.zeros(0)], dim=1)", "t.cat([t.zeros(0), t.zeros(2, 3)], dim=3)",
    "t.hstack(x)", "t.polar(x, x.double())", "t.repeat_interleave(t.zeros(2, 2, dtype=t.int64))",
    "t.repeat_interleave(x, t.tensor([1, 2, 0]), output_size=4)",
    *(f"t.vander(t.tensor([1, 2], dtype=t.{d}), {n})"
      for d in ("bool", "int16", "float16", "float32") for n in (0, 1, 3)),
    "t.linalg.vander(t.tensor([1, 2], dtype=t.int16))", "t.split(x, t.tensor(2))", "x.split(2.5)",
    "x.split(None)", "t.asarray(b'abcd')", "t.asarray(bytearray(4), dtype=t.int16)",
    "t.Tensor(x.int())", "t.Tensor(x, device='cpu')", "t.Tensor(1, 2.5)",
    "t.FloatTensor(x.double())", "x.new(device='cpu')", "x.new([2.5], device='cpu')",
    "x.new(x.int())", "x.new(x, device='cpu')", "x.type('foo')", "x.type(int)", "x.type(1)",
    "x.int().type(t.Tensor)", "t.ones_like([1])", "t.set_default_dtype('a')",
    "t.set_default_tensor_type(t.float32)", "t.equal(x, 1)", "t.promote_types(t.float32, 1)",
    "t.promote_types(t.uint16, t.bool)", "t.promote_types(t.uint32, t.float16)",
    "t.promote_types(t.complex64, t.uint64)",
)  # fmt: skip


@pytest.mark.parametrize("call", MADE)
@pytest.mark.filterwarnings("ignore")
def test_factories_make_and_refuse_what_pytorch_s_do(call):
    assert shown(call, leafax) == shown(call, torch)


def shown(call, t):
    try:
        made = eval(call, {"t": t, "np": np, "x": t.arange(3.0)})
    except Exception as e:
        return type(e), str(e)
    return repr(made).replace("leafax", "torch")


@pytest.mark.parametrize("dtype", ["uint8", "int32"])
def test_a_new_tensor_of_a_tensor_warns_in_the_name_of_the_method(dtype):
    x = leafax.ones(2, dtype=getattr(leafax, dtype))
    with pytest.warns(UserWarning, match=r"rather than tensor\.new_tensor\(sourceTensor\)"):
        assert x.new_tensor(leafax.tensor([1.5, 2.5])).tolist() == [1, 2]


@pytest.mark.parametrize("make", ["from_numpy", "tensor", "as_tensor", "asarray", "Tensor"])
def test_what_is_made_of_an_array_lies_as_the_array_does(make):
    arrays = [
        np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1), np.ones((3, 2), order="F"),
        np.arange(6.0).reshape(2, 3), np.ones((2, 0)).T[:0], np.float32(np.ones((2, 3))).T,
    ]  # fmt: skip
    for array in arrays:
        ours, theirs = (getattr(t, make)(array) for t in (leafax, torch))
        assert ours.tolist() == theirs.tolist()
        if array.size:
            assert ours.stride() == theirs.stride()
            assert (ours * 2).stride() == (theirs * 2).stride()


def test_an_array_whose_steps_are_no_elements_is_refused():
    array = np.lib.stride_tricks.as_strided(np.array([3.0, 5.0, 8.0]), (3,), (3,))
    for t in (leafax, torch):
        with pytest.raises(ValueError, match="^given numpy array strides not a multiple of the"):
            t.from_numpy(array)
