"""Methods and functions that are about elements, layouts, segments and others' memory."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from helpers.sameness import Log, same

import leafax


def scope(t: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> Any:
        return t.tensor(rng.normal(size=shape))

    return {
        "t": t, "np": np, "x": draw(2, 3), "y": draw(2, 3), "z": draw(3), "d": draw(6),
        "q": draw(2, 4, 3), "r": draw(2).requires_grad_(), "l": t.tensor([2, 0, 4]),
        "e": t.tensor([[1, 3], [4, 0]]), "f": t.ones(2, 3), "n": t.tensor([2.0, 2, 0, 3, 1, 3]),
    }  # fmt: skip


def seen(t: Any, call: str) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            out = eval(call, scope(t))
            if isinstance(out, t.Tensor):
                array = np.asarray(out.detach().tolist(), dtype=np.float64 if out.numel() else None)
        except Exception as error:
            text = str(error).split("\nException raised from")[0]
            return type(error).__name__.lstrip("_"), text
    said = [str(w.message) for w in caught if w.category is UserWarning]
    if isinstance(out, t.Tensor):
        node = None if out.grad_fn is None else out.grad_fn.name()
        return str(out.dtype), tuple(out.shape), out.requires_grad, node, array, said
    return out, said


CALLS = (
    "x.map_(y, lambda a, b: a + 2 * b)", "x.map_(z, max)",
    "x.map2_(y, z, lambda a, b, c: a * b + c)",
    "r.map_(r, max)", "r.map2_(r, r, max)", "x.map_(3, max)", "x.map2_(y, 3, max)",
    "x.map_(f, max)", "x.map2_(y, f, max)", "x.map_(t.ones(2).double(), max)",
    "x.resize(3, 2)", "x.resize_as(d)", "x.resize(5)", "x.solve(y)", "x.lstsq(y)", "x.eig()",
    "x.symeig()", "x.reinforce(1)", "t.solve(x, y)", "t.lstsq(x, y)", "t.eig(x)", "t.symeig(x)",
    "t.matrix_rank(x)",
    "t.linalg.matrix_rank(t.ones(3, 3).triu() + t.eye(3), atol=1.5, hermitian=True)",
    "t.masked._ops.sum(x, 0)", "reversed(x)", "reversed(t.tensor(1.0))", "t.ones(1).__long__()",
    "x.__long__()", "int(x)", "float(t.ones(0))", "complex(x)", "t.ones(1).__nonzero__()",
    "x.__nonzero__()", "x.__div__(2)", "x.__rdiv__(2)", "x.__idiv__(2)", "x.__array_priority__",
    "x.__array_wrap__(np.ones(2))", "np.sin(x)", "np.isnan(x)", "np.add(np.ones(3), x)",
    "np.float64(2) * f", "f * np.float64(2)", "np.sin(r)",
    "x.coalesce()", "x.is_coalesced()", "x.indices()", "x.values()", "x.crow_indices()",
    "x.col_indices()", "x.ccol_indices()", "x.row_indices()", "x.smm(y)", "x.sspaddmm(y, y)",
    "x.sparse_dim()", "x.dense_dim()", "x.to_dense() is x", "r.to_dense(t.float32)",
    "x.dequantize()", "f.dequantize() is f", "t.dequantize(f) is f", "x.is_distributed()",
    "t.is_signed(x)", "t.is_signed(l.to(t.uint8))",
    "t.is_distributed(x)", "r.as_subclass(t.Tensor)", "x.as_subclass(int)", "x.as_subclass(3)",
    "x.module_load(y)", "x.module_load(y, assign=True)", "r.module_load(r)",
    "x.narrow_copy(1, 1, 2)", "r.narrow_copy(0, 0, 1)", "x.orgqr(t.ones(2).double())",
    "x.t().orgqr(t.ones(3).double())", "x.t().orgqr(t.ones(2, 1).double())", "z.orgqr(z)",
    "q.orgqr(t.ones(3, 2).double())", "x.t().orgqr(t.ones(2))",
    "x.dim_order()", "x.t().dim_order()", "q.permute(2, 0, 1).dim_order()",
    "q[:, :1].dim_order()", 
    "q.dim_order(ambiguity_check=True)", "q.dim_order(ambiguity_check=[t.contiguous_format])",
    "t.ones(1, 2, 3, 4).dim_order(ambiguity_check=[t.contiguous_format, t.channels_last])",
    "t.ones(3).expand(2, 3).dim_order()",
    "t.ones(()).dim_order()", "t.ones(2, 1, 3).transpose(0, 2).dim_order()",
    *[f"t.segment_reduce(d, '{r}', lengths=l)" for r in ("max", "min", "sum", "mean", "prod")],
    "t.segment_reduce(d, 'amax', lengths=l, initial=0.5)",
    "t.segment_reduce(d, 'amin', lengths=l, initial=0.5)",
    "t.segment_reduce(d, 'sum', lengths=l, initial=10)",
    "t.segment_reduce(d, 'mean', lengths=l, initial=10)",
    "t.segment_reduce(d, 'prod', lengths=l, initial=2.0)",
    "t.segment_reduce(d, 'sum', offsets=t.tensor([0, 2, 2, 6]))",
    "t.segment_reduce(d, 'max', offsets=t.tensor([0, 1, 6]), initial=-9)",
    "t.segment_reduce(q, 'sum', lengths=e, axis=1)",
    "t.segment_reduce(q, 'max', lengths=e, axis=1)",
    "t.segment_reduce(q, 'mean', lengths=t.tensor([1, 1]))",
    "t.segment_reduce(d, 'sum', lengths=t.tensor([2]), unsafe=True)",
    "t.segment_reduce(d, 'foo', lengths=l)", "t.segment_reduce(d, 'sum')",
    "t.segment_reduce(d, 'sum', lengths=t.tensor([3]))", "t.segment_reduce(d, 'sum', indices=l)",
    "t.segment_reduce(d, 'sum', lengths=t.tensor([-1, 7]))",
    "t.segment_reduce(q, 'sum', lengths=t.tensor([1, 1]), axis=1)",
    "t.segment_reduce(q, 'sum', lengths=t.tensor([1, 1]), axis=-1)",
    "t.segment_reduce(l, 'sum', lengths=t.tensor([3]))",
    "t.segment_reduce(q, 'sum', offsets=t.tensor([0, 1]), axis=1)",
    "t.hash_tensor(d).item()", "t.hash_tensor(l, 0).item()", "x.hash_tensor(1).tolist()",
    "x.hash_tensor((0, 1), keepdim=True).tolist()", "t.hash_tensor(x > 0).item()",
    "t.hash_tensor(l.to(t.int8) - 3).item()", "t.hash_tensor(f.half()).item()",
    "t.hash_tensor(x, mode=1)", "t.hash_tensor(t.ones(0))", "t.hash_tensor(t.ones(2) * 1j)",
    "t.frombuffer(bytearray(range(8)), dtype=t.int16)", "t.frombuffer(bytearray(3), dtype=t.int16)",
    "t.frombuffer(bytearray(range(8)), dtype=t.int16, count=2, offset=2)",
    "t.frombuffer(bytearray(4), dtype=t.int16, count=0)",
    "t.frombuffer(bytearray(4), dtype=t.int16, count=3)",
    "t.frombuffer(bytearray(4), dtype=t.int16, offset=4)",
    "t.frombuffer(bytearray(4), dtype=t.int16, offset=1)",
    "t.frombuffer(bytearray(0), dtype=t.int16)", "t.frombuffer(3, dtype=t.int16)",
    "t.frombuffer(bytearray(8), dtype=t.bfloat16, requires_grad=True)",
    "t.from_dlpack(np.arange(3))", "t.from_dlpack(np.ones((2, 3), 'float32').T)",
    "t.from_dlpack(x)", "t.from_dlpack(t.to_dlpack(x))", "t.from_dlpack(3)", "t.from_dlpack(r)",
    "t.utils.dlpack.from_dlpack(t.utils.dlpack.to_dlpack(l))", "t.from_dlpack(x, copy=True)",
    "t.utils.dlpack.DLDeviceType.kDLCUDA.value",
)  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_it_does_as_pytorch(call: str) -> None:
    have, want = seen(leafax, call), seen(torch, call)
    assert len(have) == len(want), (have, want)
    for a, b in zip(have, want, strict=True):
        if isinstance(b, np.ndarray):
            np.testing.assert_allclose(a, b, rtol=1e-9 if "64" in want[0] else 1e-6)
        else:
            assert a == b, (have, want)


@pytest.mark.parametrize("reduce", ["max", "min", "sum", "mean", "prod"])
@pytest.mark.parametrize("initial", [None, 1.0])
def test_gradients_of_segments(reduce: str, initial: float | None) -> None:
    def gradient(t: Any) -> Any:
        n = scope(t)["n"].double().requires_grad_()
        lengths = t.tensor([4, 0, 2])
        out = t.segment_reduce(n, reduce, lengths=lengths, initial=initial)
        (out * t.tensor([1.0, 0.0, 3.0]).double()).nan_to_num(0, 0, 0).sum().backward()
        return n.grad.tolist()

    np.testing.assert_allclose(gradient(leafax), gradient(torch))


def test_an_array_of_jax_is_held_and_others_memory_is_copied() -> None:
    import jax.numpy as jnp

    array = jnp.arange(3.0)
    assert leafax.from_dlpack(array).jax() is array
    theirs = np.arange(3.0)
    ours = leafax.from_dlpack(theirs)
    theirs[:] = 9
    assert ours.tolist() == [0, 1, 2]
    other = torch.arange(3)
    ours = leafax.from_dlpack(other)
    other.fill_(9)
    assert ours.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="immutable arrays of JAX must not share"):
        leafax.from_dlpack(theirs, copy=False)


def test_a_leafax_tensor_is_shared() -> None:
    x = leafax.zeros(3)
    leafax.from_dlpack(x).fill_(2)
    assert x.tolist() == [2, 2, 2]
    leafax.from_dlpack(x, copy=True).fill_(3)
    assert x.tolist() == [2, 2, 2]


def test_a_capsule_is_taken_once() -> None:
    capsule = leafax.to_dlpack(leafax.arange(3))
    assert leafax.from_dlpack(capsule).tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="DLTensor capsules can be consumed only once"):
        leafax.from_dlpack(capsule)


def test_torch_takes_our_tensors() -> None:
    assert torch.from_dlpack(leafax.arange(3)).tolist() == [0, 1, 2]


def test_sparse_tensors_have_three_layouts() -> None:
    for name in ("to_sparse_bsc", "to_sparse_bsr"):
        with pytest.raises(NotImplementedError, match=rf"{name}\(\): leafax has sparse tensors of"):
            getattr(leafax.ones(2), name)()


class Named(leafax.Tensor):
    """A tensor with a method of its own."""

    def double_(self) -> Any:
        return self.mul_(2)


def test_a_subclass_shares_data_and_history() -> None:
    x = leafax.ones(2)
    y = x.as_subclass(Named)
    assert type(y) is Named
    y.double_()
    assert x.tolist() == [2, 2]


def test_dim_order_asks_whether_it_is_the_only_one() -> None:
    """Not compared live: torch skips these checks once other tests were there."""
    with pytest.raises(RuntimeError, match="The tensor does not have unique dim order, or cannot"):
        leafax.ones(2, 1, 3).dim_order(ambiguity_check=True)
    with pytest.raises(TypeError, match="ambiguity_check argument must be a bool or a list of mem"):
        leafax.ones(2).dim_order(ambiguity_check="a")


def test_to_takes_its_arguments_by_place_and_refuses_others() -> None:
    """`to` returns itself or a copy, with layout and history as in torch."""

    @same
    def program(torch: Any, log: Log) -> Any:
        f32, f64 = torch.float32, torch.float64
        rows, last = torch.contiguous_format, torch.channels_last
        calls: tuple[tuple[tuple[Any, ...], dict[str, Any]], ...] = (
            (("cpu", f32, True, True), {}), ((f32, True, True), {}), ((f32, False), {}),
            (("cpu", f64), {"copy": True}), ((), {"copy": True}), (("cpu", None, False, True), {}),
            ((f32,), {"copy": True, "memory_format": rows}), ((), {"memory_format": last}),
            ((True,), {}), ((3.5,), {}), ((float,), {}), ((None,), {}), ((), {}), ((f32, 1), {}),
            ((f32, True, True, True), {}), ((), {"foo": 1}), ((), {"dtype": 3}), (("abc",), {}),
            (("cpu",), {"device": "cpu"}), ((), {"memory_format": 3}), ((), {"other": 3}),
        )  # fmt: skip
        grad = torch.ones(2, 3, 2, 3).transpose(1, 2).requires_grad_()
        for x in (torch.ones(2, 3, 2, 3), grad, torch.ones(2, 3, 3, 2)[..., ::2]):
            for args, kwargs in calls:
                with log.catch():
                    y = x.to(*args, **kwargs)
                    log(y is x, y.stride(), y)
            for args, kwargs in (((x,), {}), ((x.double(), True, True), {}), ((), {"tensor": x}),
                                 ((x,), {"dtype": f64}), ((x, True, True), {})):  # fmt: skip
                with log.catch():
                    y = x.to(*args, **kwargs)
                    log(y is x, y)
            log.attempt(x.float, rows)
            log.attempt(x.double, rows, rows)
            log.attempt(lambda: x.long(foo=1))  # noqa: B023
            log(x.half(memory_format=last).stride(), x.conj_physical() is x)
