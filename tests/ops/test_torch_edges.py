"""Found by PyTorch's test_torch.py and test_tensor_creation_ops.py: the same results and words."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import leafax

Case = Callable[[Any], Any]


def _shown(case: Case, lib: Any) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = repr(case(lib)).replace("leafax.", "torch.")
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
    return found, [str(w.message).partition(" (Triggered")[0] for w in caught]


def _after(lib: Any, made: Any) -> Any:
    """Return the result made, and an unrelated tensor that is computed after it."""
    return made, lib.ones(2) * 3


def _mask(lib: Any) -> Any:
    return lib.tensor([True, False, True])


def _put(target: Any, mask: Any, value: Any) -> Any:
    target[mask] = value
    return target


CASES: dict[str, Case] = {
    "eye of a tensor": lambda t: _after(t, t.eye(t.tensor(2))),
    "eye of two tensors": lambda t: _after(t, t.eye(t.tensor(2), t.tensor(3))),
    "randperm of a tensor": lambda t: _after(t, t.randperm(t.tensor(1))),
    "randperm of bfloat16": lambda t: t.randperm(258, dtype=t.bfloat16).shape,
    "window of a tensor": lambda t: t.hann_window(t.tensor(2)),
    "any into bools": lambda t: t.any(
        t.tensor([[1, 0]], dtype=t.uint8), 0, out=t.zeros(2, dtype=t.bool)
    ),
    "all into bools": lambda t: t.all(
        t.tensor([[1, 0]], dtype=t.uint8), out=t.zeros((), dtype=t.bool)
    ),
    "logspace wraps": lambda t: t.logspace(0, 3, 4, dtype=t.int8),
    "logspace wraps bytes": lambda t: t.logspace(0, 3, 4, base=-2, dtype=t.uint8),
    "logspace wraps ints": lambda t: t.logspace(0, 12, 4, dtype=t.int32),
    "histc of bfloat16": lambda t: t.histc(t.tensor([1.0, 2.0, 3.0], dtype=t.bfloat16), 3),
    "no normal integers": lambda t: t.randn(0, dtype=t.int64),
    "no normal integers in place": lambda t: t.zeros(0, dtype=t.int64).normal_(),
    "cumsum_ of ints": lambda t: t.tensor([1.0, 2.0]).cumsum_(0, dtype=t.int),
    "cumsum_ of doubles": lambda t: t.tensor([1.0, 2.0]).cumsum_(0, dtype=t.float64),
    "cumprod_ of floats": lambda t: t.tensor([1, 2]).cumprod_(0, dtype=t.float),
    "cumsum_": lambda t: t.tensor([1.0, 2.0]).cumsum_(0, dtype=t.float32),
    "cummax": lambda t: t.cummax(t.rand([]), 100),
    "diff of no dim": lambda t: t.diff(t.zeros(2, 3), dim=4),
    "diff with what does not fit": lambda t: t.ones(2, 3).diff(dim=0, prepend=t.tensor([[0, 1]])),
    "diff of a dim from behind": lambda t: t.ones(2, 3).diff(dim=-2, append=t.ones(1, 3) * 3),
    "spacing without dims": lambda t: t.gradient(t.arange(3.0), spacing=t.tensor(2.0)),
    "spacing of coordinates": lambda t: t.gradient(
        t.arange(3.0), spacing=(t.tensor([0.0, 1.0, 3.0]),)
    ),
    "spacing of both": lambda t: t.gradient(t.zeros(3, 3), spacing=(1.0, t.tensor([0.0, 1.0]))),
    "spacing of words": lambda t: t.gradient(t.zeros(3), spacing=["a"]),
    "spacing of scalars": lambda t: t.gradient(
        t.zeros(3, 3), spacing=(t.tensor(1.0), t.tensor(2.0))
    ),
    "spacing of few": lambda t: t.gradient(t.ones(2, 3, 4), spacing=[1.0, 2.0]),
    "multinomial of nothing": lambda t: t.multinomial(t.ones(0), 1, True),
    "multinomial of no rows": lambda t: t.multinomial(t.ones(0, 0), 1, True),
    "multinomial of empty rows": lambda t: t.multinomial(t.ones(3, 0), 2, True),
    "a mask that overlaps": lambda t: (lambda m: m[1:].masked_fill_(m[:-1], False))(_mask(t)),
    "an index that overlaps": lambda t: (lambda m: _put(m[1:], m[:-1], False))(_mask(t)),
    "a tensor by an index that overlaps": lambda t: (
        lambda m: _put(m[1:], m[:-1], t.tensor(False))
    )(_mask(t)),
    "a mask turned": lambda t: (lambda m: m.masked_fill_(m.t(), False))(t.eye(3).bool()),
    "a mask by itself": lambda t: (lambda m: m.masked_fill_(m, False))(t.eye(3).bool()),
    "an index by itself": lambda t: (lambda m: _put(m, m, False))(_mask(t)),
    "sizes by NumPy": lambda t: [
        x.shape
        for x in (
            t.zeros(12).view((np.array(3), 4)), t.zeros(12).reshape((np.array(3), 4)),
            t.zeros(1, 1).expand((np.array(3), 4)), t.zeros(12).repeat((np.array(2),)),
        )
    ],
    "set to itself": lambda t: (
        lambda x, e: [
            x.is_set_to(x), x.is_set_to(x.view(3)), x.is_set_to(x.clone()), e.is_set_to(e),
            x[1:].is_set_to(x[1:]), x[1:].is_set_to(x[:2]), e.is_set_to(t.tensor([])),
        ]
    )(t.zeros(3), t.tensor([])),
    "checks of floats": lambda t: t._check_tensor_all(t.ones(1)),
    "types of tensors": lambda t: (t.FloatTensor.is_cuda, t.FloatTensor.layout),
    "a capsule": lambda t: t.asarray(t.utils.dlpack.to_dlpack(t.tensor([1, 2]))),
    "unique of a list": lambda t: t.unique([1]),
    "range of bools": lambda t: t.range(0, 3, dtype=t.bool),
    "a window of one point": lambda t: t.signal.windows.exponential(1, center=1, tau=2, sym=False),
    "a window with a center": lambda t: t.signal.windows.cosine(3, center=1),
    "spacing by NumPy": lambda t: (
        t.gradient(t.arange(4.0), spacing=np.int64(2)),
        t.gradient(t.zeros(3, 3), spacing=[np.float32(0.5), np.int64(2)]),
    ),
    "a device without a name": lambda t: t.device(""),
    "a negative size": lambda t: t.normal(0, 1, (-1,)),
    "normal into doubles": lambda t: t.normal(
        2.0, t.zeros(2), out=t.zeros(2, dtype=t.float64)
    ),
    "normal into more": lambda t: t.normal(t.ones(2), 0.0, out=t.zeros(3, 2)),
    "normal into less": lambda t: t.normal(0.0, 0.0, (3,), out=t.zeros(1)).shape,
    "normal into ints": lambda t: t.normal(0.0, 1.0, (2,), out=t.zeros(2, dtype=t.int64)),
    "segments by other lengths than int32 and int64": """
        x = torch.arange(4.0); t = torch.tensor; R = torch.segment_reduce
        R(x, "sum", lengths=t([1.0, 3])); R(x, "sum", lengths=t([1, 3], dtype=torch.int16))
        R(x, "sum", offsets=t([0.0, 1, 4])); R(x.int(), "sum", lengths=t([True] * 4))
        R(x, "sum", lengths=t([1, 3]), axis=1); R(x, "sum", offsets=t([0, 1, 4]), axis=-2)
        R(x[0], "sum", lengths=t([1])); R(x, "sum", offsets=t([[0, 1, 4]])); R(x, "sum", axis=7)
        R(x[0], "sum", lengths=t(1)); R(x, "sum", lengths=t([[1, 3]]), axis=1)
    """,
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_same_is_seen(case: str) -> None:
    assert _shown(CASES[case], leafax) == _shown(CASES[case], torch)


def test_a_warning_of_cov_is_given_where_it_is_called() -> None:
    with pytest.warns(UserWarning, match="degrees of freedom") as caught:
        leafax.zeros(2, 1).cov()
    assert caught[0].filename == __file__


def test_a_warning_of_expanded_tensors_is_given_where_they_are_written() -> None:
    x = leafax.zeros(1).expand(3)
    with pytest.warns(UserWarning, match="index_put_ on expanded tensors") as caught:
        x.index_put_((leafax.tensor([1]),), leafax.tensor(1.0))
    assert caught[0].filename == __file__


PICKLED = (
    "tanh", "cat", "zeros", "add", "nn.functional.relu", "nn.functional.conv2d",
    "nn.functional.gelu", "nn.functional.softmax", "special.erf", "linalg.inv", "fft.fft",
)  # fmt: skip


@pytest.mark.parametrize("path", PICKLED)
def test_functions_are_pickled_by_name(path: str) -> None:
    fn: Any = leafax
    for name in path.split("."):
        fn = getattr(fn, name)
    assert pickle.loads(pickle.dumps(fn)) is fn


@pytest.mark.parametrize("name", "add dim detach relu_ sum numel size abs_ backward".split())
def test_methods_are_pickled_by_name(name: str) -> None:
    fn = getattr(leafax.Tensor, name)
    assert pickle.loads(pickle.dumps(fn)) is fn


@pytest.mark.parametrize("call", ["register_hook()", "retain_grad(1)", "dim_order(1, 2)"])
def test_a_method_called_wrongly_is_one_of_tensor(call: str) -> None:
    said = []
    for lib in (torch, leafax):
        with pytest.raises(TypeError) as raised:
            eval(f"lib.ones(2).{call}", {"lib": lib})
        said.append(str(raised.value))
    assert said[0] == said[1]
