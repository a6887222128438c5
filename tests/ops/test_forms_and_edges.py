"""Forms of calls and edges of arguments, as PyTorch's own tests have them."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers.sameness import Log, same

import leafax


def _flag(t: Any) -> Any:
    return t.tensor(True)


def _two(t: Any) -> Any:
    return t.tensor(2.0)


FORMS: dict[str, list[Callable[[Any], Any]]] = {
    "the older form of add": [
        lambda t: t.add(_flag(t), _flag(t), True),
        lambda t: t.add(t.ones(2), True, t.ones(2)),
        lambda t: t.add(t.ones(2), _two(t), t.ones(2)),
        lambda t: t.ones(2).sub(_two(t), 3),
        lambda t: t.sub(_flag(t), _flag(t), True),
        lambda t: t.ones(2).addcmul(_two(t), t.ones(2), t.ones(2)),
        lambda t: t.addmv(_two(t), t.ones(2), t.ones(2, 2), t.ones(2)),
        lambda t: t.add(t.ones(2), 2, t.ones(2), out=t.empty(2)),
        lambda t: t.addmv(2, t.ones(2), 3, t.ones(2, 2), t.ones(2), out=t.empty(2)),
        lambda t: t.add(t.ones(2), t.tensor(2.0, requires_grad=True), t.ones(2)),
        lambda t: t.add(t.ones(2), t.ones(1), t.ones(2)),
    ],
    "result_type": [
        lambda t: t.result_type(tensor=t.ones(1, dtype=t.half), other=2),
        lambda t: t.result_type(scalar=1, tensor=t.ones(1, dtype=t.half)),
        lambda t: t.result_type(scalar1=1, scalar2=2.0),
        lambda t: t.result_type(t.ones(1, dtype=t.half), other=t.ones(1)),
    ],
    "nonzero": [
        lambda t: t.nonzero(_two(t), False),
        lambda t: t.nonzero(t.ones(2), as_tuple=True),
        lambda t: t.ones(2).nonzero(as_tuple=False),
    ],
    "sizes that overflow": [
        lambda t: t.empty(0).resize_([0, 4, 2305843009213693952]),
        lambda t: tuple(t.empty(0).resize_([3, 2**62, 0]).shape),
        lambda t: t.empty((0, 2**62, 8)),
        lambda t: t.zeros((0, 2**62, 8)),
        lambda t: t.as_strided(t.ones(2, 3), [1], [1], 2**63 - 1),
        lambda t: t.as_strided(t.ones(2, 3), [1], [1], 2**60),
        lambda t: t.as_strided(t.ones(2, 3), [3], [2**62], 0),
        lambda t: t.zeros(3).set_(t.zeros(3).untyped_storage(), 2**61, [2], [1]),
        lambda t: t.empty_strided((2, 2), (2**62, 2**62)),
        lambda t: t.zeros(1).expand(2**62, 4),
    ],
    "indices": [
        lambda t: t.zeros(3, 0).index_add(0, t.tensor([5]), t.ones(1, 0)).tolist(),
        lambda t: t.zeros(3, 4).index_add(0, t.tensor([5]), t.ones(1, 4), alpha=2).tolist(),
        lambda t: t.zeros(3, 4).index_add(0, t.tensor([5]), t.ones(1, 4)).tolist(),
        lambda t: t.zeros(3, 4).index_add(0, t.tensor([5]).int(), t.ones(1, 4)).tolist(),
        lambda t: t.take_along_dim(t.arange(4.0), t.tensor([1], dtype=t.int32)),
        lambda t: t.take_along_dim(t.arange(4.0), t.tensor([])),
        lambda t: t.take_along_dim(t.arange(4.0), t.tensor([1.0])),
        lambda t: t.take_along_dim(t.ones(2, 3), t.tensor([1], dtype=t.int32), 1),
        lambda t: t.tensor(1.0).index_select(0, t.tensor([])),
        lambda t: t.tensor(1.0).index_select(0, t.tensor([0.0])),
        lambda t: t.ones(4).cfloat().index_reduce(0, t.tensor([0]), t.ones(1).cfloat(), "prod"),
        lambda t: t.ones(4).cfloat().index_reduce(0, t.tensor([0]), t.ones(1).cfloat(), "amax"),
    ],
    "ops by ATen's names": [
        lambda t: t.ops.aten.index_put_(t.ones(2, 2), [None, t.tensor([True, False])], _two(t)),
        lambda t: t.ops.aten.index_put(t.ones(2), [t.tensor([True, False])], _two(t)),
        lambda t: t.ops.aten.index_put(
            t.ones(2, 2), [None, t.tensor([True, False])], _two(t)
        ).tolist(),
        lambda t: t.ops.aten.index.Tensor(t.eye(2), [None, t.tensor([True, False])]),
        lambda t: t.ops.aten.index.Tensor(t.eye(2), []),
        lambda t: t.ops.aten.add_(t.ones(2), 1),
        lambda t: t.ops.aten.unsqueeze_(t.ones(2), 0),
        lambda t: t.ops.aten.slice_copy(t.arange(4), 0, 0, 2),
        lambda t: t.ops.aten.zeros_like(t.ones(2)),
        lambda t: t.ops.aten.copy_(t.ones(2), t.zeros(2)),
        lambda t: t.ops.aten.equal(t.ones(2), t.ones(2)),
        lambda t: t.ops.aten.item(_two(t)),
        lambda t: t.ops.aten._softmax(t.ones(2), 0, False),
        lambda t: t.ops.aten.linalg_vector_norm(t.ones(4)),
        lambda t: t.ops.aten.sum.dim_IntList(t.ones(2, 3), [0]),
        lambda t: t.ops.aten.masked_select(t.ones(2), t.tensor([True, False])),
        lambda t: t._C._nn.linear(t.ones(2, 3), t.ones(4, 3), t.ones(4)),
    ],
    "accelerators": [
        lambda t: (t.accelerator.is_available(), t.accelerator.device_count()),
        lambda t: t.accelerator.current_accelerator(),
        lambda t: t.accelerator.synchronize(),
        lambda t: t.accelerator.current_device_index(),
        lambda t: t.accelerator.empty_cache(),
        lambda t: t.accelerator.memory_allocated(),
        lambda t: t.accelerator.set_device_index(0),
        lambda t: t.accelerator.device_index(None).__enter__(),
    ],
    "saved tensors of leaves": [
        lambda t: t._C._autograd._make_saved_tensor(t.ones(1), is_output=True).unpack(),
        lambda t: t._C._autograd._make_saved_tensor(
            t.ones(1, requires_grad=True), is_output=True
        ).unpack(),
        lambda t: t._C._autograd._make_saved_tensor(
            t.ones(1, requires_grad=True) * 2, is_output=True
        ).unpack(),
    ],
    "what an example has no name for": [
        lambda t: t.ones(2).name,
        lambda t: _copied_slices(t).foo,
        lambda t: _copied_slices(t)._saved_foo,
        lambda t: _copied_slices(t)._raw_saved_foo,
    ],
    "versions of what make_tensor draws": [
        lambda t: [
            t.testing.make_tensor((2,), dtype=dtype, device="cpu", **given)._version
            for dtype in (t.float32, t.complex64, t.int64, t.bool, t.float16)
            for given in ({}, {"exclude_zero": True}, {"noncontiguous": True})
        ],
    ],
}


def _copied_slices(t: Any) -> Any:
    b = t.ones(4, requires_grad=True).clone()
    b[:2].exp_()
    return b.grad_fn


@pytest.mark.parametrize("what", FORMS)
def test_forms(what: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        for form in FORMS[what]:
            log.attempt(form, torch)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.zeros(2).H,
        lambda t: t.zeros(2).mT,
        lambda t: t.zeros(2).adjoint(),
        lambda t: t.tensor_split(t.zeros(3), 2, 1),
        lambda t: t.tensor(1.0).tensor_split(2),
    ],
)
def test_errors_have_no_notes_of_jax(call: Any) -> None:
    with pytest.raises((RuntimeError, IndexError)) as e:
        call(leafax)
    assert not getattr(e.value, "__notes__", [])


@pytest.mark.parametrize(
    "make",
    [
        lambda t, a: t.as_tensor(a),
        lambda t, a: t.as_tensor(a, dtype=t.float32),
        lambda t, a: t.asarray(a),
        lambda t, a: t.from_numpy(a),
        lambda t, a: t.tensor(a),
        lambda t, a: t.frombuffer(a.data, dtype=t.float64),
    ],
)
def test_memory_that_may_not_be_written_to_is_warned_of(make: Any) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        array = np.ones(3)
        array.flags.writeable = False
        log(make(torch, array))


def test_masks_of_bytes_are_warned_of_at_the_users_line() -> None:
    mask, x = leafax.tensor([1, 0], dtype=leafax.uint8), leafax.zeros(2, 3)

    def index() -> int:
        x[mask]
        return inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]

    def write() -> int:
        x[mask] = leafax.ones(3)
        return inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]

    for call in (index, write):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            line = call()
        assert {(w.filename, w.lineno) for w in caught} == {(__file__, line)}


@pytest.mark.parametrize("tracked", [False, True])
def test_functionalize_returns_views_of_what_it_did_not_write_to(tracked: bool) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        functions = [
            lambda x: x.view(2, 2),
            lambda x: x[:2],
            lambda x: x.view(2, 2).view(4),
            lambda x: x.detach(),
            lambda x: x.detach()[1:],
            lambda x: x[1:][1:],
            lambda x: x[:2].detach(),
            lambda x: x,
            lambda x: x.mul_(2).view(2, 2),
        ]
        for f in functions:
            x = torch.zeros(4).requires_grad_(tracked) * 1.0
            out = torch.func.functionalize(f)(x)
            log(out._base is x, out.requires_grad)
            with torch.no_grad():
                out.add_(1)
            log(x.tolist(), out.tolist())
        x = torch.arange(4.0, requires_grad=True)
        y = torch.func.functionalize(lambda x: x.view(2, 2))(x)
        (y * y).sum().backward()
        log(x.grad.tolist())


GRADCHECKED: dict[str, Callable[[Any, Any], Any]] = {
    "an integer": lambda t, x: x.int(),
    "a bool": lambda t, x: x > 1,
    "a bool beside": lambda t, x: (x, x > 0),
    "nothing": lambda t, x: None,
    "a number": lambda t, x: 3,
    "a dict": lambda t, x: {},
    "nothing beside": lambda t, x: (x, None),
    "a wrong gradient": lambda t, x: x.detach() * x,
}


@pytest.mark.parametrize("what", GRADCHECKED)
def test_gradcheck_of_other_outputs(what: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.ones(1, dtype=torch.double, requires_grad=True)
        log.attempt(torch.autograd.gradcheck, lambda x: GRADCHECKED[what](torch, x), x)


def test_gradcheck_tells_what_went_wrong_inside() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        def refuse(g: Any) -> None:
            if g is None:
                raise RuntimeError("undefined")

        def f(x: Any) -> Any:
            y = x.clone()
            y.register_hook(refuse)
            return y

        x = torch.ones(1, dtype=torch.double, requires_grad=True)
        try:
            torch.autograd.gradcheck(f, x)
        except RuntimeError as e:
            log(e, e.__cause__, e.__context__)


def test_a_checkpoint_that_computes_again_in_another_dtype() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        calls = []

        def f(x: Any) -> Any:
            calls.append(x)
            return x.sin() if len(calls) == 1 else x.double().sin()

        x = torch.ones(2, requires_grad=True)
        checkpoint = torch.utils.checkpoint.checkpoint
        checkpoint(f, x, use_reentrant=False, determinism_check="none").sum().backward()
        log.gradients(x.grad)
