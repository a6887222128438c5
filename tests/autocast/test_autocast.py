"""Autocast against torch's on CPUs: dtypes, values, gradients, the weight cache, messages."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
import torch
from flax import linen as nn
from flax import nnx
from helpers.op_db import ENTRIES
from helpers.op_samples import flat, samples, to_leafax, variants

import leafax
import leafax.nn.functional as F
from leafax._ops.autocast.lists import _BY_DEVICE, policy_of
from leafax.adapters import linen
from leafax.adapters import nnx as nnx_models
from leafax.functional import TABLE

X = np.random.default_rng(0).normal(size=(4, 4)).astype("float32")
BOTH = (leafax, torch)

# One entry an op of PyTorch's lists, and some that are on none.
LISTED = """
    matmul mm bmm addmm addbmm baddbmm nn.functional.linear nn.functional.conv1d
    nn.functional.conv2d nn.functional.conv_transpose2d nn.functional.prelu linalg.vecdot
    nn.functional.scaled_dot_product_attention tensordot inner linalg.matrix_power
    linalg.multi_dot einsum nn.functional.avg_pool3d nn.functional.binary_cross_entropy
    nn.functional.grid_sample polar prod quantile nanquantile stft cdist trace view_as_complex
    cholesky cholesky_inverse cholesky_solve ormqr pinverse geqrf qr svd triangular_solve
    nn.functional.max_pool3d nn.functional.max_unpool2d nn.functional.adaptive_avg_pool3d
    nn.functional.adaptive_max_pool3d nn.functional.mse_loss nn.functional.l1_loss
    nn.functional.nll_loss nn.functional.cross_entropy nn.functional.smooth_l1_loss
    nn.functional.huber_loss nn.functional.soft_margin_loss nn.functional.multi_margin_loss
    nn.functional.multilabel_margin_loss nn.functional.hinge_embedding_loss
    nn.functional.poisson_nll_loss nn.functional.cosine_embedding_loss nn.functional.kl_div
    nn.functional.margin_ranking_loss nn.functional.triplet_margin_loss
    nn.functional.ctc_loss nn.functional.binary_cross_entropy_with_logits fft.fft fft.irfft
    linalg.cond linalg.matrix_rank linalg.solve linalg.svdvals linalg.inv linalg.pinv
    linalg.eigh linalg.lstsq stack cat index_copy nn.functional.pad.reflect
    nn.functional.pad.replicate nn.functional.pad.constant nn.functional.layer_norm
    nn.functional.group_norm nn.functional.batch_norm nn.functional.gelu softmax sum exp mv outer
    nn.functional.multi_head_attention_forward masked.prod
""".split()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_results_have_torchs_dtypes(dtype: str) -> None:
    wrong, ran = [], 0
    for name in LISTED:
        entry, theirs_dtype = ENTRIES[name], getattr(torch, dtype)
        if theirs_dtype not in entry.supported_dtypes("cpu"):
            continue
        _, ours, theirs = next(iter(variants(entry)))
        for number, sample in samples(entry, theirs_dtype, 2):
            arguments = (sample.input, *sample.args)
            try:
                with torch.autocast("cpu"):
                    wanted = theirs(*arguments, **sample.kwargs)
            except RuntimeError:  # no kernel for what autocast made of it
                continue
            leaves: list[Any] = []
            args, kwargs = to_leafax(arguments, leaves), to_leafax(sample.kwargs, leaves)
            with leafax.autocast("cpu"):
                got = ours(*args, **kwargs)
            ran += 1
            have = [repr(t.dtype) for t in flat(got) if isinstance(t, leafax.Tensor)]
            want = [repr(t.dtype) for t in flat(wanted) if isinstance(t, torch.Tensor)]
            if have != want:
                wrong.append((name, number, have, want))
    assert not wrong
    assert ran > 70


@pytest.mark.parametrize(("device", "key"), [("cpu", "AutocastCPU"), ("cuda", "AutocastCUDA")])
def test_every_op_of_torchs_lists_has_its_policy(device: str, key: str) -> None:
    listed = {
        name.removeprefix("aten::").partition(".")[0]
        for name in torch._C._dispatch_get_all_op_names()
        if torch._C._dispatch_has_kernel_for_dispatch_key(name, key)
    }
    before = {"nn.functional": "", "linalg": "linalg_", "fft": "fft_", "": ""}
    ours = {before[op.namespace] + op.name: op for op in TABLE.values() if op.namespace in before}
    assert len(listed & ours.keys()) > 70
    assert [name for name in listed & ours.keys() if policy_of(device, ours[name]) is None] == []
    assert _BY_DEVICE[device].keys() <= TABLE.keys()


def run(library: Any, fn: Callable[[Any, Any], Any], array: Any = X) -> list[Any]:
    """Values, dtypes and gradients of `fn(library, x)` under autocast."""
    x = library.tensor(array.tolist(), requires_grad=True)
    with library.autocast("cpu"):
        out = fn(library, x)
    out.float().sum().backward()
    return [repr(out.dtype), out.detach().float().numpy(), repr(x.grad.dtype), x.grad.numpy()]


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "a chain": lambda T, x: (x @ x).relu() @ x + x,
    "promotion of a product and a float32": lambda T, x: T.cat([x @ x, x]),
    "products alone": lambda T, x: T.stack([x @ x, x.mm(x)]),
    "a loss is in float32": lambda T, x: T.nn.functional.mse_loss(x @ x, (x @ x).detach() * 0),
    "cross entropy": lambda T, x: T.nn.functional.cross_entropy(x @ x, T.tensor([0, 1, 2, 3])),
    "a sum is as it comes": lambda T, x: (x @ x).exp().sum(0),
    "doubles are left alone": lambda T, x: (x.double() @ x.double()).sum(),
    "halves become bfloat16": lambda T, x: x.half() @ x.half(),
    "normalisation of a product": lambda T, x: T.nn.functional.layer_norm(x @ x, (4,), x[0], x[1]),
    "einsum that sums": lambda T, x: T.einsum("ij,kj->ik", x, x),
    "einsum that does not": lambda T, x: T.einsum("ij,kl->ijkl", x, x),
    "einsum over one": lambda T, x: T.einsum("ij->j", x),
    "no list has mv": lambda T, x: x.mv(x[0]),
    "dot": lambda T, x: T.tensordot(x, x, 2),
    "in place": lambda T, x: x.clone().addmm_(x, x),
    "off inside": lambda T, x: off(T, x),
    "twice": lambda T, x: twice(T, x),
}


def off(T: Any, x: Any) -> Any:
    y = x @ x
    with T.autocast("cpu", enabled=False):
        return y.float() @ x


def twice(T: Any, x: Any) -> Any:
    with T.autocast("cpu", dtype=T.float16, cache_enabled=False):
        y = x @ x
    return y.float() @ x


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients_are_torchs(name: str) -> None:
    ours, theirs = (run(library, PROGRAMS[name]) for library in BOTH)
    assert ours[::2] == theirs[::2]
    for have, want in zip(ours[1::2], theirs[1::2], strict=True):
        np.testing.assert_allclose(have, want, rtol=3e-2, atol=6e-2)


def test_out_is_not_cast() -> None:
    for T in BOTH:
        x, out = T.tensor(X.tolist()), T.empty(4, 4)
        with T.autocast("cpu"):
            T.mm(x, x, out=out)
        assert repr(out.dtype) == "torch.float32"
        np.testing.assert_allclose(out.numpy(), X @ X, rtol=1e-5, atol=1e-5)


def test_views_are_read_anew_as_they_were() -> None:
    def seen(T: Any) -> list[Any]:
        x = T.tensor(X[:, :2].tolist())
        with T.autocast("cpu"):
            z = T.view_as_complex(x)
            x.add_(1)
            half = T.view_as_complex(x.bfloat16())
            real = (z + 0).real.tolist()
        return [*real, repr(z.dtype), repr(half.dtype)]

    ours, theirs = seen(leafax), seen(torch)
    assert ours[4:] == theirs[4:]
    np.testing.assert_allclose(ours[:4], theirs[:4], rtol=1e-6)


def test_a_weight_is_cast_once() -> None:
    # Casts are kept by dtype. PyTorch keeps one, whatever its dtype, so that a block of another
    # dtype inside fails.
    def seen(T: Any, **kwargs: Any) -> list[Any]:
        w = T.tensor(X.tolist(), requires_grad=True)
        x = T.tensor(X.tolist())
        with T.autocast("cpu", **kwargs):
            with T.no_grad():
                x @ w
            a, b = x @ w, x @ w
            with T.no_grad():
                w.zero_()
            c = x @ w
        casts = [y.grad_fn.next_functions[1][0] for y in (a, b)]
        with T.autocast("cpu", **kwargs):
            d = x @ w
        return [
            casts[0] is casts[1], casts[0].name(), a.requires_grad,
            bool(c.detach().abs().sum() > 0), bool(d.detach().abs().sum() > 0),
        ]  # fmt: skip

    assert seen(leafax) == seen(torch) == [True, "ToCopyBackward0", True, True, False]
    assert seen(leafax, cache_enabled=False) == seen(torch, cache_enabled=False)


def calls(T: Any) -> dict[str, Callable[[], Any]]:
    x = T.tensor(X.tolist())
    half, f32 = x.half(), T.float32

    def cat() -> Any:
        with T.autocast("cpu"):
            return T.cat([half, half])

    def mixed() -> Any:
        with T.autocast("cpu"):
            return x.clone().addmm_(x, x.bfloat16())

    return {
        "device": lambda: T.autocast(1),
        "no such device": lambda: T.autocast("meta"),
        "not callable": lambda: T.autocast("cpu")(3),
        "dtype": lambda: T.set_autocast_dtype("cpu", 3),
        "float16 in a join": cat,
        "mixed in place": mixed,
        "fwd": lambda: T.amp.custom_fwd(device_type=3),
        "bwd": lambda: T.amp.custom_bwd(device_type=3),
        "float32": lambda: T.autocast("cpu", dtype=f32),
        "float64 disabled": lambda: T.autocast("cpu", dtype=T.float64, enabled=False)._enabled,
        "cuda": lambda: T.autocast("cuda")._enabled,
    }


@pytest.mark.parametrize("name", calls(torch))
def test_messages_are_torchs(name: str) -> None:
    def told(T: Any) -> Any:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            try:
                got = calls(T)[name]()
            except Exception as e:
                return type(e), str(e)
        return getattr(got, "_enabled", got), [(w.category, str(w.message)) for w in heard]

    assert told(leafax) == told(torch)


def test_the_state_is_set_and_restored() -> None:
    def seen(T: Any) -> list[Any]:
        found = []

        def note() -> None:
            found.append((
                T.is_autocast_enabled("cpu"), repr(T.get_autocast_dtype("cpu")),
                T.is_autocast_cache_enabled(), (T.ones(2, 2) @ T.ones(2, 2)).dtype.itemsize,
            ))  # fmt: skip

        note()
        with T.autocast("cpu", cache_enabled=False):
            note()
            with T.autocast("cpu", T.float16):
                note()
            with pytest.raises(ValueError), T.autocast("cpu", enabled=False):
                note()
                raise ValueError
            with T.no_grad():
                note()
            note()
        T.autocast("cpu")(note)()
        T.set_autocast_enabled("cpu", True)
        note()
        T.set_autocast_dtype("cpu", T.float16)
        note()
        T.set_autocast_enabled("cpu", False)
        T.set_autocast_dtype("cpu", T.bfloat16)
        T.set_autocast_cache_enabled(False)
        note()
        T.set_autocast_cache_enabled(True)
        T.clear_autocast_cache()
        return [*found, T.autocast_increment_nesting(), T.autocast_decrement_nesting()]

    assert seen(leafax) == seen(torch)
    assert leafax.amp.is_autocast_available("cpu") and not leafax.amp.is_autocast_available("meta")


def test_custom_functions() -> None:
    def seen(T: Any, cast: Any) -> list[Any]:
        found: list[Any] = []

        class Product(T.autograd.Function):  # type: ignore[misc]
            @staticmethod
            @T.amp.custom_fwd(device_type="cpu", cast_inputs=cast)
            def forward(ctx: Any, a: Any, b: Any) -> Any:
                ctx.save_for_backward(a, b)
                found.append([repr(a.dtype), T.is_autocast_enabled("cpu")])
                return a @ b

            @staticmethod
            @T.amp.custom_bwd(device_type="cpu")
            def backward(ctx: Any, grad: Any) -> Any:
                a, b = ctx.saved_tensors
                found.append([repr(grad.dtype), T.is_autocast_enabled("cpu")])
                return grad.float() @ b.T.float(), a.T.float() @ grad.float()

        x = T.tensor(X.tolist(), requires_grad=True)
        with T.autocast("cpu"):
            out = Product.apply(x, x)
        out.float().sum().backward()
        return [*found, repr(out.dtype), repr(x.grad.dtype)]

    assert seen(leafax, None) == seen(torch, None)
    assert seen(leafax, leafax.float32) == seen(torch, torch.float32)


def test_checkpoint_computes_again_under_the_same_autocast() -> None:
    def fn(T: Any, x: Any) -> Any:
        return T.utils.checkpoint.checkpoint(lambda y: (y @ y).relu() @ y, x, use_reentrant=False)

    ours, theirs = run(leafax, fn), run(torch, fn)
    assert ours[::2] == theirs[::2]
    np.testing.assert_allclose(ours[3], theirs[3], rtol=3e-2, atol=6e-2)


def test_transformations_carry_the_casts() -> None:
    x = leafax.tensor(X.tolist())
    with leafax.autocast("cpu"):
        each = leafax.vmap(lambda row: row @ x)(x)
        out, tangent = leafax.func.jvp(lambda y: y @ y, (x,), (leafax.ones_like(x),))
    assert each.dtype == out.dtype == tangent.dtype == leafax.bfloat16
    ones = np.ones_like(X)
    np.testing.assert_allclose(tangent.float(), X @ ones + ones @ X, rtol=3e-2, atol=6e-2)


def test_a_step_compiles_once() -> None:
    w = leafax.tensor(X.tolist(), requires_grad=True)
    optimizer = leafax.optim.SGD([w], lr=0.01)
    x = leafax.tensor(X.tolist())

    def step() -> float:
        optimizer.zero_grad()
        with leafax.autocast("cpu"):
            loss = F.mse_loss((x @ w).relu() @ w, x)
        loss.backward()
        optimizer.step()
        return float(loss.item())

    losses = [step() for _ in range(6)]
    runs = leafax.explain().runs[-4:]
    assert all(r.how == "cached" for r in runs)
    assert losses[-1] < losses[0] and w.grad.dtype == w.dtype == leafax.float32


class Layer(nnx.Module):
    def __init__(self) -> None:
        self.a = nnx.Linear(4, 3, rngs=nnx.Rngs(0))

    def __call__(self, x: Any) -> Any:
        return self.a(x)


@pytest.mark.quick(1)
@pytest.mark.parametrize("kind", ["linen", "nnx"])
def test_flax_models_compute_in_autocasts_dtype(kind: str) -> None:
    x = leafax.tensor(X.tolist())
    model: Any = (
        nnx_models.Model(Layer()) if kind == "nnx"
        else linen.Model(nn.Dense(3), nn.Dense(3).init(jax.random.key(0), X))
    )  # fmt: skip
    with leafax.autocast("cpu"):
        out = model(x)
        with leafax.autocast("cpu", enabled=False):
            assert model(x).dtype == leafax.float32
        loss = F.cross_entropy(out, leafax.tensor([0, 1, 2, 0]))
    assert out.dtype == leafax.bfloat16 and loss.dtype == leafax.float32
    loss.backward()
    assert all(p.grad.dtype == p.dtype == leafax.float32 for p in model.parameters())
    model.compute_in(leafax.float32)
    with leafax.autocast("cpu"):
        assert model(x).dtype == leafax.float32, "what the user told the model wins"
    assert model.compute_in(None)(x).dtype == leafax.float32
