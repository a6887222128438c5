"""Functions of the `torch` namespace that are no op of their own, beside live PyTorch."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from helpers.sameness import Log, same

import leafax

SHAPES = {
    "a": (2, 4, 5), "b": (2, 4, 5), "m": (3, 4), "n": (4, 3), "s": (4, 4), "p": (5, 2),
    "v": (4,), "w": (4,), "img": (2, 2, 4, 4), "grid": (2, 3, 3, 2), "th": (2, 2, 3),
    "k": (3, 4, 2), "q": (5, 2, 3), "h": (3, 6),
}  # fmt: skip

VALUES = (
    "t.layer_norm(a, (5,))", "t.layer_norm(a, [4, 5], k.new_ones(4, 5), eps=0.1)",
    "t.group_norm(a, 2, v, w)", "t.group_norm(v.view(1, 4), 4)",
    "t.batch_norm(a, v, w, None, None, True, 0.1, 1e-5, False)",
    "t.batch_norm(a, v, w, t.ones(4, dtype=f), t.full((4,), 2.0, dtype=f), False, 0.1, 1e-5, True)",
    "t.instance_norm(a, v, None, None, None, True, 0.1, 1e-5, False)",
    "t.embedding(p, i)", "t.embedding(p, i, 1)", "t.embedding(p, i, -3)", "t.embedding(p, i, 9)",
    "t.embedding(p, i, scale_grad_by_freq=True)",
    "t.embedding_bag(p, i, o)", "t.embedding_bag(p, i, o, False, 1)",
    "t.embedding_bag(p, i, o, mode=2)", "t.embedding_bag(p.float(), i, o)",
    "t.embedding_bag(p, i, o, False, 0, False, v)",
    "t.embedding_bag(p, i, o, False, 1, False, None, False, 1)",
    "t.embedding_bag(p, i, o, False, 2, False, None, False, 1)",
    "t.embedding_bag(p, i, t.tensor([0, 2, 2, 4]), False, 2, False, None, True)",
    "t.avg_pool1d(a, 2)", "t.avg_pool1d(a, 3, stride=[], padding=1)", "t.max_pool1d(a, 2)",
    "t.max_pool1d_with_indices(a, 2, 1)", "t.max_pool2d(img, 2)", "t.max_pool2d(img, [3, 2], 1, 1)",
    "t.max_pool3d(img.unsqueeze(0), 2)", "t.adaptive_avg_pool1d(a, 2)",
    "t.adaptive_max_pool1d(a, 2)", "t.bilinear(m, m, k.new_ones(2, 4, 4))",
    "t.grid_sampler(img, grid, 0, 0, False)", "t.grid_sampler(img, grid, 2, 1, True)",
    "t.grid_sampler(img.unsqueeze(1), k.new_ones(2, 1, 2, 2, 3), 1, 2, False)",
    "t.affine_grid_generator(th, (2, 1, 3, 4), True)",
    "t.affine_grid_generator(th, [2, 1, 3, 4], False)",
    "t.binary_cross_entropy_with_logits(a, b.detach(), reduction=2)",
    "t.binary_cross_entropy_with_logits(m, m.detach(), v.detach(), w.detach(), 0)",
    "t.cosine_embedding_loss(s, s * v, t.tensor([1, -1, 1, -1]), 0.1, 0)",
    "t.hinge_embedding_loss(v, t.tensor([1, -1, 1, -1]))",
    "t.hinge_embedding_loss(v, t.tensor([1, -1, 1, -1]), 2.0, reduction=0)",
    "t.margin_ranking_loss(v, w, t.tensor([1, -1, 1, -1]), 0.5, 2)",
    "t.triplet_margin_loss(s, s + 1, s * v, 1.0, 2.0, 1e-6, True, 0)",
    "t.triplet_margin_loss(s, s + 1, s * v, -0.1)",
    "t.kl_div(v, w.detach().softmax(0))", "t.kl_div(v, w, 2, log_target=True)",
    "t.poisson_nll_loss(v, w.detach().abs(), True, False, 1e-8, 1)",
    "t.poisson_nll_loss(v.exp(), w.detach().abs() + 2, False, True, 1e-8, 0)",
    "t.ctc_loss(k.log_softmax(2), t.tensor([[1], [1], [1], [1]]), [3] * 4, [1] * 4)",
    "t.ctc_loss(k.log_softmax(2), t.ones(4, 1).long(), t.full((4,), 3), t.ones(4).long(), 0, 0)",
    "t.native_channel_shuffle(a.detach(), 2)",
    "t.conv_tbc(q, k.view(2, 3, 4), v, 1)", "t.conv_tbc(q, k.view(2, 3, 4), v, -1)",
    "t.norm_except_dim(a)", "t.norm_except_dim(a.detach(), 2, -1)", "t.norm_except_dim(a, 1, 1)",
    "t.norm_except_dim(a, 2, 2)", "t.frobenius_norm(m, 0)", "t.frobenius_norm(m, [0, 1], True)",
    "t.nuclear_norm(m)", "t.nuclear_norm(m, True)", "t.nuclear_norm(a, (0, 2))",
    "t.chain_matmul(m)", "t.chain_matmul(m, n, m, s)", "t.vander(v.detach())",
    "t.vander(w.detach(), 2, True)",
    "t.vander(t.tensor([1, 2, 3]), increasing=True)", "t.vander(v, 0)", "t.vander(v, N=1)",
    "t.orgqr(n, t.ones(3, dtype=f))",
    "t.hann_window(5)", "t.hann_window(5, False, dtype=f)", "t.hann_window(0)", "t.hann_window(1)",
    "t.hamming_window(6)", "t.hamming_window(6, True, 0.6, 0.3)", "t.blackman_window(7, dtype=f)",
    "t.bartlett_window(5)", "t.bartlett_window(4, False)", "t.kaiser_window(6)",
    "t.kaiser_window(6, False, 3.0)", "t.kaiser_window(5, True, beta=2.0, dtype=f)",
    "t.hann_window(3, dtype=t.bfloat16)", "t.hann_window(4, requires_grad=True)",
    "t.detach_copy(a.detach())", "t.view_as_real_copy(t.view_as_complex(p))",
    "t.view_as_complex_copy(p.detach())", "t.narrow_copy(a, 1, 2, 2)", "t.expand_copy(v, (2, 4))",
    "t.split_copy(a, 2)", "t.unbind_copy(a)",
)  # fmt: skip

# Composed there of several ops, one node here; or the other way around.
ANOTHER_NODE = {
    "bilinear", "affine_grid_generator", "embedding_bag", "nuclear_norm", "frobenius_norm",
    "chain_matmul",
}  # fmt: skip


def names(t: Any) -> dict[str, Any]:
    """The arguments that calls are written in."""
    rng = np.random.default_rng(0)
    made = {k: t.tensor(rng.normal(size=s)).requires_grad_() for k, s in SHAPES.items()}
    return {
        "t": t, "f": t.float64, "i": t.tensor([1, 2, 4, 1]), "o": t.tensor([0, 2]), **made,
    }  # fmt: skip


def shown(t: Any, call: str) -> list[Any]:
    """All that a call gives, and the gradients of its first result."""
    scope = names(t)
    out = eval(call, scope)
    outs = out if isinstance(out, tuple) else (out,)
    seen: list[Any] = [type(out).__name__ if isinstance(out, tuple) else None]
    for x in outs:
        seen += [str(x.dtype), tuple(x.shape), x.requires_grad, x.detach().to(t.float64).numpy()]
    fn = outs[0].grad_fn
    if fn is not None:
        name = re.split(r"[.(]", call)[1]
        seen.append(None if name in ANOTHER_NODE else fn.name())
        weights = t.arange(outs[0].numel(), dtype=outs[0].dtype).view(tuple(outs[0].shape)) + 1
        (outs[0] * weights).sum().backward()
        grads = [scope[k].grad for k in SHAPES]
        seen += [None if g is None else g.numpy() for g in grads]
    return seen


def agree(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        tol = 1e-9 if a.dtype == np.float64 else 1e-5
        return a.shape == b.shape and np.allclose(a, b, rtol=tol, atol=tol, equal_nan=True)
    return bool(a == b)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", VALUES)
def test_values_and_gradients_are_pytorchs(call: str) -> None:
    have, want = shown(leafax, call), shown(torch, call)
    if "float()" in call or "window" in call:  # single precision
        have, want = ([np.float32(x) if isinstance(x, np.ndarray) else x for x in y]
                      for y in (have, want))  # fmt: skip
    assert len(have) == len(want)
    for a, b in zip(have, want, strict=True):
        assert agree(a, b), (a, b)


ERRORS = (
    "t.group_norm(v, 2)", "t.group_norm(a, 3)",
    "t.layer_norm()", "t.layer_norm(3, (2,))", "t.layer_norm(a, (3,))", "t.batch_norm(a, v, w)",
    "t.batch_norm(a, 1, None, None, None, True, 0.1, 1e-5, False)", "t.embedding(p)",
    "t.embedding(p, 3)", "t.embedding(v, i)", "t.embedding(p, i.double())", "t.max_pool2d(img)",
    "t.embedding_bag(p, i, o, False, 3)", "t.embedding_bag(p, i, o, False, 1, False, v)",
    "t.embedding_renorm_(v.detach(), i, 1.0, 2.0)",
    "t.embedding_renorm_(p.detach(), v, 1.0, 2.0)", "t.embedding_renorm_(p, i, 1.0, 2.0)",
    "t.grid_sampler(img, grid)", "t.grid_sampler(img, img, 0, 0, True)",
    "t.kl_div(v, 'a')", "t.hinge_embedding_loss(v)", "t.poisson_nll_loss(v, w)",
    "t.native_channel_shuffle(a, 3)", "t.native_channel_shuffle(a, 2).sum().backward()",
    "t.detach_copy(a).sum().backward()", "t.norm_except_dim(a, 2, 5)",
    "t.frobenius_norm(m)", "t.frobenius_norm(a, [0, 1, 2])", "t.nuclear_norm(a, [0, 1, 2])",
    "t.nuclear_norm(3)", "t.chain_matmul()", "t.chain_matmul([m, n])", "t.vander(m)",
    "t.vander(v, -1)", "t.orgqr(m)", "t.range(0, 3, 0)", "t.range(3, 0)", "t.range(3)",
    "t.range(0, float('inf'))", "t.hann_window()", "t.hann_window(-1)",
    "t.hann_window(3, dtype=t.int64)", "t.kaiser_window(3, dtype=t.complex64)",
    "t.conv_tbc(m, k, v)", "t.conv_tbc(q, m, v)", "t.conv_tbc(q, k, m)", "t.conv_tbc(q, k, v)",
    "t.conv_tbc(q, k.view(2, 3, 4), h[0])", "t.conv_tbc(q[:2], t.cat([k.view(2, 3, 4)] * 2), v)",
    "t.conv_tbc(q, k.view(2, 3, 4), None)", "t.conv_tbc(q.float(), k.view(2, 3, 4), v)",
    "t.view_as_real_copy(a)", "t.view_as_complex_copy(p)",
)  # fmt: skip


def said(t: Any, call: str) -> tuple[str, str]:
    with pytest.raises(Exception) as caught:
        eval(call, names(t))
    text = str(caught.value).split("\nException raised from")[0]
    return type(caught.value).__name__.lstrip("_"), text


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", ERRORS)
def test_errors_are_pytorchs(call: str) -> None:
    assert said(leafax, call) == said(torch, call)


def test_running_statistics_are_updated() -> None:
    def stats(t: Any) -> list[Any]:
        n = names(t)
        mean, var = t.zeros(4, dtype=t.float64), t.ones(4, dtype=t.float64)
        t.batch_norm(n["a"], None, None, mean, var, True, 0.5, 1e-5, False)
        t.instance_norm(n["a"], None, None, mean, var, True, 0.5, 1e-5, False)
        return [mean.tolist(), var.tolist()]

    np.testing.assert_allclose(stats(leafax), stats(torch), rtol=1e-12)


def test_rows_are_scaled_down_in_place() -> None:
    def rows(t: Any) -> list[Any]:
        p = names(t)["p"].detach()
        out = t.embedding_renorm_(p, t.tensor([1, 2, 1]), 0.5, 2.0)
        assert out is p
        return [p.tolist()]

    np.testing.assert_allclose(rows(leafax), rows(torch), rtol=1e-9)


def test_whole_channels_are_dropped_in_place() -> None:
    x = leafax.ones(40, 5, 3)
    for drop in (leafax.feature_dropout_, leafax.feature_alpha_dropout_):
        y = x.clone()
        assert drop(y, 0.5, True) is y
        assert y._version == 1
        channels = y.numpy().reshape(200, 3)
        assert (channels == channels[:, :1]).all()
        assert len(np.unique(channels)) == 2
        assert drop(y, 0.5, False) is y


@pytest.mark.parametrize(
    "call",
    ["t.range(0, 3)", "t.range(0, 3, 0.5)", "t.range(1.5, 4, dtype=t.int32)",
     "t.range(3, 0, -1, requires_grad=True)"],
)  # fmt: skip
def test_range_takes_its_end_in_and_says_that_it_is_deprecated(call: str) -> None:
    seen = []
    for t in (leafax, torch):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            x = eval(call, {"t": t})
        seen.append((x.tolist(), str(x.dtype), x.requires_grad, [str(w.message) for w in caught]))
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    ("call", "word"),
    [("t.chain_matmul(m, n)", "chain_matmul"), ("t.frobenius_norm(m, 0)", "frobenius_norm"),
     ("t.nuclear_norm(m)", "nuclear_norm")],
)  # fmt: skip
def test_what_is_deprecated_says_so_once(call: str, word: str) -> None:
    said = []
    for t in (leafax, torch):
        t.set_warn_always(True)
        try:
            with pytest.warns(UserWarning, match=word) as caught:
                eval(call, names(t))
        finally:
            t.set_warn_always(False)
        said.append(str(caught[0].message).split(" (Triggered")[0])
    assert said[0] == said[1]


def test_asarray() -> None:
    """`asarray` keeps, cuts off, copies or refuses a tensor as in torch."""
    asked: tuple[dict[str, Any], ...] = (
        {}, {"requires_grad": False}, {"requires_grad": True}, {"copy": True}, {"copy": False},
        {"copy": True, "requires_grad": False}, {"dtype": "float64"},
        {"dtype": "float64", "copy": False}, {"dtype": "int64"}, {"requires_grad": None},
        {"dtype": "int64", "requires_grad": False}, {"copy": True, "requires_grad": True},
    )  # fmt: skip

    @same
    def program(torch: Any, log: Log) -> Any:
        for kw in asked:
            if "dtype" in kw:
                kw = {**kw, "dtype": getattr(torch, kw["dtype"])}
            leaf = torch.tensor([1.0, 2.0], requires_grad=True)
            for x in (leaf, leaf + 1, torch.ones(2), [1, 2], 3, np.array([1, 2]), np.array([1.5]),
                      np.float32(3), (1.0, 2), True, "abc"):  # fmt: skip
                log.attempt(lambda: torch.asarray(x, **kw))  # noqa: B023
            log(leaf.requires_grad)


def test_allclose() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        a = torch.ones(2)
        nan = torch.tensor([float("nan")])
        log(torch.allclose(a, a.expand(3, 2)), a.allclose(a + 1e-6), a.allclose(a + 1e-3))
        log(torch.allclose(nan, nan), torch.allclose(nan, nan, equal_nan=True))
        log(torch.allclose(torch.tensor([1, 3]), torch.tensor([1, 3])))
        log.attempt(torch.allclose, torch.ones(2, 3), a)
        log.attempt(lambda: torch.allclose(a, a, rtol=-1))
        log.attempt(torch.allclose, a, a.double())
        log.attempt(torch.allclose, a, 1.0)
        log.attempt(torch.allclose, 1.0, a)


def test_results_and_errors_have_pytorchs_names() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([1.0, 2.0, 1.5])
        log(repr(torch.histogram(x, 3)), repr(torch.histogramdd(x[:, None], [3])))
        log(torch.linalg.LinAlgError.__name__)
        log(torch.nn.functional.native_channel_shuffle(torch.arange(8.0).reshape(1, 4, 2), 2))
        log.attempt(x.index_reduce_, 0, torch.tensor([0]), torch.ones(1).double(), "prod")
        for budget in (0.5, 2.0, True, "much"):
            log.attempt(torch.autograd.graph.region_activation_memory_budget, budget)
        log(torch.autograd.graph.set_override_stale_capture_stream(False))
        log(torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(True))
