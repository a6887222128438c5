"""Errors for arguments of the wrong types, compared with live PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
from make_signatures import PATH, source

import leafax

CALLS = (
    "t.maximum([1, 2], x)", "t.maximum(x, 1)", "t.maximum(x)", "x.maximum(1)", "x.maximum()",
    "t.eq([1, 2], (3, 4))", "t.eq(1, other=x)", "x.eq('a')", "x.eq(None)", "t.pow('a', x)",
    "x.pow('a')", "x.pow_('a')", "x.fmod_('a')", "t.bitwise_and(1, 2)", "t.sin(3)", "t.sum([1.0])",
    "t.mean(3)", "t.sort(3)", "t.bmm(x, 3)", "x.add('a')", "t.add('a', x)", "t.matmul(x, [1])",
    "t.softmax(3, dim=0)", "x.softmax('a')", "t.special.zeta('a', x)", "t.linalg.norm(3)",
    "t.fft.fft(3)", "t.nn.functional.relu(3)", "t.nn.functional.linear(3, x)",
    "t.nn.functional.conv2d(3, x)", "t.cat([x, None])", "t.cat(x)", "t.stack([x, 3])",
    "t.abs(numpy.ones(2))", "t.reshape([1], (1,))", "x.masked_fill(x > 0, 'a')",
    "x.gather(0, [0])", "t.index_select(x, 0, [0])", "t.lerp(x, 1, 1)",
)  # fmt: skip


# What PyTorch's parser says first, whatever else is wrong with the call.
REFUSED = (
    "x.sin(1)", "x.sin(dtype=t.int8)", "x.sin_(1)", "t.isinf(x, 1)", "t.fft.fft(x, bogus=1)",
    "t.fft.fft(x, t.float32, n=2)", "t.linalg.eig(x, ())", "t.linalg.lstsq(x)", "x.add()",
    "t.flip(x, dims=-9)", "x.cumsum([0])", "x.cumsum_([0])", "x.requires_grad_().sin_(1)",
    "t.div(x, x, rounding_mode=-9)", "x.div(x, rounding_mode=-9)", "t.max(x, (0,))",
    "t.all(x, dim=numpy.array([0]), keepdim=True)", "t.std_mean(x, dim=(0,), correction=[1])",
    "t.addmm(x, x, x, alpha=1, beta=1, dtype=t.int8)", "t.tensor_split(x, 3, [])",
    "t.block_diag(x, 3)", "t.movedim(x, 'a', 1)", "t.narrow(x, 0, 1.5, 1)", "t.roll(x, 0, 1j)",
    "t.linalg.solve_triangular(x, 'x', upper=True)", "t.eye(2.5)", "t.zeros(2, bogus=1)",
    "t.arange()", "t.arange(1, bogus=2)", "t.linspace(0, 'a', 3)", "t.full((2,))", "t.eye('a', 3)",
    "t.scatter(x, 0, x)", "t.topk(x, 1, out=x)", "t.histc(x, bins=[1])", "t.bincount(x, 'a')",
    "t.special.i1(x, 1)", "t.linalg.svd(x, full_matrices=[x])", "t.nonzero_static(1, size=2)",
    "x.masked_select(0)", "x.index_reduce(0, 1, x, 'mean')", "t.cumulative_trapezoid(True, dx=2.0)",
    "x.expand('a')", "x.expand(1.5)", "x.repeat('a')", "x.reshape('a')", "x.permute(0.5, 1)",
    "x.flip(1.5)", "t.ones((2.0, 3))", "t.cat((x, 1))", "x.sum(dim=t.tensor(1.5))",
    "t.sort(x, dim=t.ones(1))", "t.transpose(x, 0, dim1=None)", "t.unbind(x, 0, 1)",
    # What a body would take in silence.
    "x.sum(0, 1)", "x.flip(True)", "t.histc(x, bins=True)", "t.clamp(x, x, 1)",
    "x.reshape(True, 2)", "t.linalg.lu(t.eye(2), pivot='a')", "x.flatten(True)",
    "x.flatten(0, 1, 2)",
    "t.flatten(x, end_dim=0.5)", "t.diff(x, True)", "x.cumsum(t.tensor([0]))", "x.cumsum_(True)",
    "t.linalg.cholesky(t.eye(2), upper=1)", "t.cat([x], dim=True)", "x.kthvalue(1, 0, 1)",
    "t.special.logit(x, 'a')", "t.special.softmax(x, True)", "t.allclose(x, x, equal_nan=1)",
    "x.uniform_(0, 'a')", "x.random_(True)", "x.random_(1.5)", "x.copy_(x, 1)", "x.contiguous(1)",
    "x.exponential_(1, 2)", "x.numpy(1)", "x.is_contiguous(1)", "x.new_zeros(2, dtype=1)",
    "x.item(1)", "t.zeros(2, layout=1)", "t.zeros(2, requires_grad=1)",
    "t.empty(2, size=2)", "t.eye(2, None)",
    "t.empty(2, memory_format=1)", "t.rand(2, generator=1)", "x.new_full((2,), 'a')",
    "x.view(True, 2)", "x.index_add_(True, x, x)",
    "x.cauchy_(generator=())", "t.full((2,), 1, pin_memory=1)",
    "t.flip(t.tensor(1), (1,))", "t.flip(t.tensor(1), (0, 0))", "t.tensor(1).flip(-2)",
    # Of a sequence the first element is looked at by the parser, the others when they are taken.
    "t.amax(x, (0.5,))", "x.sum((0, 1.5))", "x.flip(0, 1.5)", "x.reshape((2, None))",
    "x.mul({})", "x.mul_('a')", "x.mul()", "t.mul(x, numpy.ones(2))", "x.mul_(2, None)",
    "x.mul(x, foo=1)", "t.sum(x, out=t.empty(0))", "t.prod(x, out=t.empty(()))",
    "t.nn.functional.mse_loss(x, 'a')", "t.nn.functional.l1_loss(None, x)",
    "t.nn.functional.binary_cross_entropy_with_logits(x, 3)",
    "t.amax(x, [0, t.ones(2)])", "x.amax((0, numpy.bool_(1)))",
)  # fmt: skip


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_wrong_with_a_call_is_said_as_by_pytorch(call: str) -> None:
    assert said(call, leafax) == said(call, torch)


@pytest.mark.parametrize(
    "call",
    ["x.sum(dim=t.tensor(0))", "x.sum((t.tensor(0), 1))", "x.softmax(t.tensor(0))",
     "x.transpose(t.tensor(0), 1)", "x.narrow(0, t.tensor(0), 1)", "x.topk(t.tensor(1))[0]",
     "t.roll(x, t.tensor(1))", "x.var(t.tensor(0))", "x.tril(t.tensor(-1))",
     "t.stack([x, x], dim=t.tensor(1))", "x.amax(t.tensor(True))", "x.flip([t.tensor([1])])",
     "x.sort(stable=None)[0]", "x.div(x + 1, rounding_mode=None)", "x.amax(None)"],
)  # fmt: skip
def test_a_tensor_stands_for_a_number(call: str) -> None:
    found = [eval(call, {"t": t, "x": t.arange(6.0).view(2, 3)}) for t in (leafax, torch)]
    assert found[0].tolist() == found[1].tolist()


def said(call: str, t: object) -> tuple[type, str]:
    import numpy

    with pytest.raises(Exception) as caught:
        eval(call, {"t": t, "x": t.ones(2), "numpy": numpy})  # type: ignore[attr-defined]
    return type(caught.value), str(caught.value)


@pytest.mark.parametrize("call", CALLS)
def test_wrong_types_are_named_as_by_pytorch(call):
    assert said(call, leafax) == said(call, torch)


def test_a_call_that_was_right_once_does_not_let_a_wrong_one_through():
    x = leafax.ones(2)
    x.maximum(leafax.ones(2))
    for _ in range(2):
        with pytest.raises(TypeError, match=r"'other' \(position 1\) must be Tensor, not int"):
            x.maximum(1)


def test_numbers_stand_for_tensors_where_pytorch_lets_them():
    x = leafax.ones(2)
    for y in (x / 2, x.div(2, rounding_mode="floor"), leafax.sub(x, 2, alpha=3), x // 2, 3 * x):
        assert y.shape == (2,)
    assert leafax.where(x > 0, 1, x).tolist() == [1, 1]


def test_the_checked_in_signatures_are_pytorchs():
    assert PATH.read_text() == source(), "run `python tests/make_signatures.py`"


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("float16", 1e6), ("float32", 1e300), ("int32", 1 << 40), ("int64", float("inf")),
     ("int64", 1j), ("uint8", 300), ("bfloat16", 1e39)],
)  # fmt: skip
def test_a_number_that_the_dtype_cannot_hold_is_refused(dtype, value):
    def fill(t, how):
        x = t.ones(2, dtype=getattr(t, dtype))
        return x.masked_fill(x > 0, value) if how == "masked" else x.fill_(value)

    for how in ("masked", "fill"):
        with pytest.raises(RuntimeError) as want:
            fill(torch, how)
        with pytest.raises(RuntimeError) as have:
            fill(leafax, how)
        assert str(have.value) == str(want.value)


def test_a_number_that_was_refused_is_no_reason_to_take_the_next():
    """The second number at a place becomes a runtime input, which bodies do not look into."""
    x = leafax.ones(2)
    for delta in (0, -1):
        with pytest.raises(RuntimeError, match="does not support non-positive values for delta"):
            leafax.nn.functional.huber_loss(x, x, delta=delta)


@pytest.mark.parametrize(
    ("dtype", "value"), [("float16", float("inf")), ("uint8", -1), ("bool", 3), ("int64", 1.5)]
)
def test_a_number_that_the_dtype_can_hold_after_all(dtype, value):
    def fill(t):
        return t.ones(2, dtype=getattr(t, dtype)).fill_(value).tolist()

    assert fill(leafax) == fill(torch)


@pytest.mark.parametrize("make", ["complex", "view_as_complex"])
def test_complex_numbers_of_half_precision_are_refused(make):
    x = leafax.ones(3, 2, dtype=leafax.float16)
    with pytest.raises(NotImplementedError, match="complex32 does not exist in JAX"):
        leafax.complex(x, x) if make == "complex" else leafax.view_as_complex(x)


@pytest.mark.parametrize(
    "call",
    ["t.searchsorted(t.tensor([1, 2, 3]), 2, sorter=t.tensor([0, 1]))",
     "t.searchsorted(t.tensor([1, 2]), 2, sorter=t.tensor([0, 1], dtype=t.int32))",
     "t.unique(t.ones(2, 3), dim=5)", "t.unique_consecutive(t.ones(2, 3), dim=5)",
     "t.unique(t.ones(3, 0), dim=0)", "t.where(x > 1, x)", "t.where(x > 1, x, 'a')",
     "t.where(t.ones(2, 3) > 2, t.ones(4), t.ones(2, 3))", "t.histc(x, 4, 3, 1)",
     "t.masked_fill(t.ones(2, 3), t.tensor([True, False]), 1)", "t.histc(x, bins=0)",
     "t.histc(x, 4, float('nan'), 1)", "t.diff(t.ones(2, 3), prepend=t.ones(3))",
     "t.trapezoid(t.tensor(1.0))", "t.unravel_index(t.tensor([3]), 'ab')", "x.size('a')",
     "x.stride('a')", "t.device('cuda:01')", "t.device('cpu:0', 1)", "t.int32.to_complex()",
     "x.index_put_(t.tensor([0]), t.ones(1))", "x.index_put(t.tensor([0]), t.ones(1))",
     "t.index_put(x, t.tensor([0]), t.ones(1))",
     "x.copy_([1])", "x.copy_(other=x).tolist()", "x.apply_(1)", "t.typename(t.float32)",
     "t.ones(3, requires_grad=True).apply_(lambda z: z)", "t.max(t.ones(2, 2), 0).n_fields",
     *(f"t.ones(3, dtype=t.{a}).{op}_(t.ones(3, dtype=t.{b}))"
       for op in ("bitwise_and", "bitwise_or", "bitwise_left_shift")
       for a, b in (("bool", "float32"), ("int32", "float16"), ("float32", "int32"))),
     "t._check(False)", "t._check(False, lambda: 5)", "t._check(1)", "t._check(t.tensor(True))",
     "t._check(False, 'a')", "t._check_value(False, lambda: 'm')", "t._check_index(False)",
     "t._check_type(False)", "t._check_not_implemented(False)", "t._check_is_size(-1)",
     "t._check_tensor_all(t.tensor([True, False]))", "t._check_tensor_all(t.tensor([True]))",
     "t._check_with(KeyError, False, lambda: 'x')", "t.sym_int(-1.5)", "t.sym_float(1)",
     "t.sym_max(1, 2.0)", "t.sym_min(1, 2.0)", "t.sym_not(True)", "t.sym_ite(True, 1, 2)",
     "t.sym_sum([1, 2])", "t.sym_sqrt(4.0)",
     "t.ones(2, 3).logsumexp([])", "t.ones(3).logsumexp(())", "t.tensor(2.0).logsumexp([]).item()",
     "t.ones(2, 3).norm(dim=[0, 1, 1])", "t.norm(t.ones(2, 3), dim=[0, 1, 2])",
     "t.std(x=x).item()", "t.var(a=x, axis=0).item()",
     "t.cross(x1=x, x2=x + 1).tolist()", "t.cross(x)",
     "t.abs(t.ones(2) * 1j, out=t.ones(2, dtype=t.complex128))",
     "t.abs(t.ones(2) * 1j, out=t.ones(2, dtype=t.complex64)).tolist()",
     "t.searchsorted(t.tensor(1.0), x)", "t.searchsorted(t.tensor(1.0), 1.0)",
     *(f"t.{call}, out_int32={narrow}, out=t.zeros(3, dtype=t.{kind}))"
       for call in ("searchsorted(x, x", "bucketize(x, x")
       for narrow, kind in ((True, "int64"), (False, "float32"))),
     *(f"t.ones(3, dtype=t.{kind}).{op}(0, dtype=t.bool)"
       for kind in ("float32", "int64", "complex64") for op in ("cumsum", "cumprod")),
     "t.ones(0).cumsum(0, dtype=t.bool).tolist()",
     *(f"t.ones(1, dtype=t.{kind}).expand(3).{op}_().tolist()"
       for kind in ("complex64", "float32", "int32") for op in ("conj_physical", "nan_to_num"))],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_calls_of_all_kinds_are_answered_and_refused_as_by_pytorch(call: str) -> None:
    found = []
    for t in (leafax, torch):
        try:
            found.append(eval(call, {"t": t, "x": t.arange(3.0)}))
        except Exception as e:
            found.append((type(e), str(e)))
    assert found[0] == found[1] and type(found[0]) is type(found[1])


def test_what_pytorch_warns_of() -> None:
    x = leafax.arange(6.0).view(2, 3)
    with pytest.warns(UserWarning, match=r"^cov\(\): degrees of freedom is <= 0"):
        leafax.cov(leafax.ones(2, 1))
    leafax.set_warn_always(True)
    try:
        for call in (leafax.cross, leafax.Tensor.cross):
            with pytest.warns(UserWarning, match="^Using torch.cross without specifying the dim"):
                call(leafax.ones(2, 3), leafax.ones(2, 3))
        array = numpy.ones(2)
        array.flags.writeable = False
        with pytest.warns(UserWarning, match="^The given NumPy array is not writable"):
            leafax.from_numpy(array)
        with pytest.warns(UserWarning, match="^where received a uint8 condition tensor"):
            leafax.where((x > 2).byte(), x, x)
    finally:
        leafax.set_warn_always(False)


def test_conversions_to_numbers_warn_once() -> None:
    found: list[list[str]] = []
    for t in (leafax, torch):
        x = t.tensor(0.7, requires_grad=True)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            float(x)  # whoever came first has had it by now
            told.clear()
            float(x), complex(x), int(x)
            t.set_warn_always(True)
            try:
                float(x), complex(x), int(x)
                with t.no_grad():
                    float(x), complex(x)
            finally:
                t.set_warn_always(False)
        found.append([str(w.message).partition(" (Trig")[0] for w in told])
    assert found[0] == found[1]
    assert len(found[0]) == 2


def numbers_of_numpy(t: Any) -> list[Any]:
    """Calls with NumPy's numbers, and None where a generator could be."""
    x, two, one = t.ones(2, 4), numpy.int64(2), numpy.int64(1)
    calls: list[Callable[[], Any]] = [
        lambda: x.unsafe_chunk(two)[0], lambda: x.unsafe_split(t.tensor(1))[0],
        lambda: x.div_(two), lambda: x.copy_(numpy.float64(1)), lambda: x.add(x, alpha=two),
        lambda: t.nn.functional.rms_norm(x, (4,), eps=numpy.float64(0.1)),
        lambda: t.nn.functional.margin_ranking_loss(x, x, x, margin=numpy.float64(1)),
        lambda: x.chunk(two, one)[0], lambda: x.view(t.tensor(4), -1), lambda: x.repeat(two, 1),
        lambda: t.nn.functional.normalize(x, dim=one), lambda: x.repeat_interleave(two),
        lambda: t.nn.functional.cosine_similarity(x, x, dim=one), lambda: x.norm(2, one),
        lambda: x.narrow(one, numpy.int64(0), two), lambda: t.full((2,), numpy.float64(1)),
        lambda: t.rand((3,), generator=None) * 0, lambda: t.randint(1, (2,), generator=None),
        lambda: t.randperm(1, generator=None), lambda: x.normal_(generator=None) * 0,
    ]  # fmt: skip
    return [call().numpy().round(5).tolist() for call in calls]


def test_numbers_of_numpy_are_numbers() -> None:
    assert numbers_of_numpy(leafax) == numbers_of_numpy(torch)


@pytest.mark.parametrize(
    "call",
    [
        "t.absolute({})", "t.arcsin()", "x.arctan2({})", "x.arctan2_({})", "t.clip(x, {})",
        "x.clip_({})", "t.concat([{}])", "x.greater({})", "x.not_equal({})", "x.absolute(1)",
        "t.special.expit({})", "t.linalg.matmul(x, {})", "x.swapdims({}, 0)", "t.negative(x, 1)",
        "t.multiply({})", "x.multiply_(x, x)", "t.divide(x, None)", "x.subtract({})", "x.ger()",
        "x.true_divide()", "t.row_stack('a')",
    ],
)  # fmt: skip
def test_other_names_of_an_op_are_told(call: str) -> None:
    assert_refused_alike(call)


@pytest.mark.parametrize(
    "call",
    [
        "x.where()", "x.where('a')", "x.where(x > 0, x, x)", "t.where(x, 2)", "t.where('a')",
        "t.where(x > 0, 2, 3, 4)", "t.where(x > 0, other=x)", "x.addmm(x)", "x.bmm()",
        "x.polygamma(x)", "x.swapaxes_(0, 'a')", "x.squeeze_('a')", "x.squeeze_(bogus=1)",
        "x.t_(2)", "x.unsqueeze_('a')", "x.as_strided_(2, 2, 1, 1, 1)", "x.fill_('a')",
        "x.fill_()", "x.normal_(1, 2, 3)", "x.bernoulli_('a')", "x.repeat_interleave('a')",
        "x.unsafe_chunk('a')", "x.is_complex(2)", "x.retain_grad(2)", "x.tolist(a=1)",
        "x.size('a')", "x.stride(0, 1)", "x.requires_grad_(1, 2)", "x.is_set_to('a')",
        "t.ones_like('a')", "t.rand_like()", "t.nonzero('a')", "t.hsplit(x, 1, 2)",
        "x.hsplit(indices_or_sections=2)", "t.as_tensor(x, t.float64)",
    ],
)  # fmt: skip
def test_what_suits_no_signature_is_told(call: str) -> None:
    assert_refused_alike(call)


@pytest.mark.parametrize(
    "call",
    [
        "x.squeeze(0, 1)", "x.squeeze(0, -2)", "x.clone().squeeze_(0, 1)", "x.count_nonzero(0, 1)",
        "x.hsplit(sections=1)", "t.hsplit(x, indices=(1,))", "x.vsplit(0, 1)", "x.dsplit(1, 2)",
        "x.vsplit(t.tensor(1))",
        "x.histogram()",
    ],
)  # fmt: skip
def test_dims_and_sections_one_by_one(call: str) -> None:
    def told(t: Any) -> str:
        return repr(eval(call, {"t": t, "x": t.arange(3.0).reshape(1, 1, 3)}))

    assert told(leafax) == told(torch)


@pytest.mark.parametrize(
    "call",
    [
        "t.median(x, axis=0, keepdims=True)", "x.nanmedian(axis=0, keepdims=True)",
        "t.nonzero(a=x)", "t.diff(x, axis=1)", "t.trapezoid(x, axis=0)", "t.sin_(input=x)",
        "t.gradient(x=x, axis=0)", "t.zeros_like(a=x)", "t.equal(x1=x, x2=x)", "t.rot90(input=x)",
        "t.max(x1=x, x2=x)",
        "t.is_complex(x=x)", "t.median(x, bogus=0)",
    ],
)  # fmt: skip
def test_numpys_names_of_arguments(call: str) -> None:
    def told(t: Any) -> str:
        try:
            return repr(eval(call, {"t": t, "x": t.arange(6.0).reshape(2, 3)}))
        except TypeError as error:
            return str(error)

    assert told(leafax).replace("leafax", "torch") == told(torch)


def assert_refused_alike(call: str) -> None:
    said = []
    for t in (torch, leafax):
        with pytest.raises(TypeError) as caught:
            eval(call, {"t": t, "x": t.ones(2)})
        said.append(str(caught.value))
    assert said[0] == said[1]
