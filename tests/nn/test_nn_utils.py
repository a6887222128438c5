"""The rest of `nn.utils`, and `nn.parallel`, against torch."""

from __future__ import annotations

import copy
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
from helpers.module_scripts import Said, agree

import leafax
from leafax import nn


def filled(t: Any, module: Any) -> Any:
    """The same parameters and statistics in both libraries, in float64."""
    draw = np.random.default_rng(0)
    module = module.double()
    for name, x in module.state_dict(keep_vars=True).items():
        if x.dtype == t.float64:
            made = draw.standard_normal(tuple(x.shape))
            x.data = t.from_numpy(np.asarray(made**2 if "var" in name else made))
    return module


def near(x: Any) -> Any:
    return x.detach().numpy().round(9) + 0.0


PUBLIC = [
    "nn", "nn.init", "nn.parameter", "nn.modules", "nn.utils", "nn.utils.rnn",
    "nn.utils.parametrize", "nn.utils.parametrizations", "nn.utils.fusion",
    "nn.utils.memory_format", "nn.utils.spectral_norm", "nn.utils.weight_norm",
    "nn.utils.stateless", "nn.utils.clip_grad", "nn.parallel", "nn.parallel.data_parallel",
    "nn.parallel.distributed", "nn.parallel.scatter_gather", "nn.parallel.parallel_apply",
    "nn.parallel.replicate", "nn.attention.bias", "nn.common_types",
]  # fmt: skip
NOT_HERE = {"quantizable", "quantized", "qat", "intrinsic"}  # of quantized tensors


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_here(name: str) -> None:
    theirs, ours = import_module(f"torch.{name}"), import_module(f"leafax.{name}")
    named = getattr(theirs, "__all__", None) or [
        n for n, x in vars(theirs).items()
        if not n.startswith("_") and getattr(x, "__module__", "torch").startswith("torch.nn")
    ]  # fmt: skip
    assert not {n for n in named if not hasattr(ours, n)} - NOT_HERE


def test_old_weight_norm() -> None:
    def script(t: Any, said: Said) -> None:
        utils = t.nn.utils
        m = filled(t, t.nn.Conv1d(2, 3, 2))
        was = m.weight.detach().clone()
        said(utils.weight_norm(m) is m, m, list(m.state_dict()))
        said(near(m.weight - was), m.weight.is_leaf, tuple(m.weight_g.shape))
        optimizer = t.optim.SGD(m.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            m(t.ones(1, 2, 3, dtype=t.float64)).pow(2).sum().backward()
            optimizer.step()
        said(*map(near, m.parameters()))
        said.refused(lambda: utils.weight_norm(m), lambda: copy.deepcopy(m))
        y = m(t.ones(1, 2, 3, dtype=t.float64))
        said(utils.remove_weight_norm(m) is m, [n for n, _ in m.named_parameters()])
        said(near(y - m(t.ones(1, 2, 3, dtype=t.float64))), len(m._forward_pre_hooks))
        said.refused(lambda: utils.remove_weight_norm(m))
        said.refused(lambda: utils.weight_norm(t.nn.LazyLinear(2)))

    agree(script)


def test_old_spectral_norm() -> None:
    def script(t: Any, said: Said) -> None:
        utils, x = t.nn.utils, t.ones(2, 3, dtype=t.float64)
        m = filled(t, t.nn.Linear(3, 2))
        was = m.weight
        said(utils.spectral_norm(m) is m, m, list(m.state_dict()), m.weight_orig is was)
        for name in ("_u", "_v"):
            v = getattr(m, "weight" + name)
            v.copy_(t.nn.functional.normalize(1 + t.arange(len(v), dtype=t.float64), dim=0))
        optimizer = t.optim.SGD(m.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            (m(x) - m(2 * x)).pow(2).sum().backward()  # two calls, one backward pass
            optimizer.step()
        said(near(m.weight_orig), near(m.weight_u), near(m.weight_v), near(m.weight))
        state = m.state_dict()
        said(state._metadata[""])
        m.eval()
        y = m(x)
        said(near(y - m(x)))
        fresh = utils.spectral_norm(t.nn.Linear(3, 2).double()).eval()
        old = copy.copy(state)
        del old._metadata, old["weight_v"]
        old["weight"] = m.weight.detach()
        for given in (state, old):
            said(fresh.load_state_dict(given), near(fresh(x) - y))
        said.refused(
            lambda: fresh.load_state_dict({"bias": state["bias"]}),
            lambda: utils.spectral_norm(m), lambda: utils.remove_spectral_norm(m, "bias"),
            lambda: utils.spectral_norm(t.nn.Linear(2, 2), n_power_iterations=0),
            lambda: utils.spectral_norm(t.nn.Linear(2, 2, bias=False), "bias"),
            lambda: utils.spectral_norm(t.nn.LazyLinear(2)),
        )  # fmt: skip
        said(utils.remove_spectral_norm(m) is m, [n for n, _ in m.named_parameters()])
        said(near(y - m(x)), list(m.state_dict()), len(m._forward_pre_hooks))
        turned = utils.spectral_norm(t.nn.ConvTranspose1d(3, 2, 1))
        said(tuple(turned.weight_u.shape), tuple(turned.weight_v.shape))

    agree(script)


def test_what_spectral_norm_was_removed_from_is_loaded_again() -> None:
    m = nn.utils.remove_spectral_norm(nn.utils.spectral_norm(nn.Linear(3, 2)))
    m.load_state_dict(m.state_dict())  # PyTorch asks for `weight_orig`, by mistake


def test_fusion() -> None:
    def script(t: Any, said: Said) -> None:
        utils = t.nn.utils
        for layer, norm, x, turned in (
            (t.nn.Conv1d(2, 3, 2), t.nn.BatchNorm1d(3), t.ones(1, 2, 3), False),
            (t.nn.ConvTranspose1d(2, 3, 2, bias=False), t.nn.BatchNorm1d(3, affine=False),
             t.ones(1, 2, 3), True),
        ):  # fmt: skip
            layer, norm, x = filled(t, layer).eval(), filled(t, norm).eval(), x.double()
            fused = utils.fuse_conv_bn_eval(layer, norm, turned)
            said(fused, near(fused.weight), near(fused.bias), fused.bias.requires_grad)
            said(near(fused(x) - norm(layer(x))), fused is layer)
        layer, norm = filled(t, t.nn.Linear(2, 3)).eval(), filled(t, t.nn.BatchNorm1d(3)).eval()
        fused = utils.fuse_linear_bn_eval(layer, norm)
        said(fused, near(fused.weight), near(fused.bias), fused.weight.requires_grad)
        bare = t.nn.BatchNorm1d(3, track_running_stats=False).eval()
        said.refused(
            lambda: utils.fuse_conv_bn_eval(layer.train(), norm),
            lambda: utils.fuse_linear_bn_eval(layer.eval(), norm.train()),
            lambda: utils.fuse_linear_bn_eval(layer, t.nn.BatchNorm1d(2).eval()),
            lambda: utils.fuse_linear_bn_eval(layer, bare),
            lambda: utils.fuse_conv_bn_eval(layer, bare),
        )  # fmt: skip

    agree(script)


def test_memory_format_and_vectors() -> None:
    def script(t: Any, said: Said) -> None:
        utils = t.nn.utils
        m = t.nn.Sequential(t.nn.Conv2d(2, 3, 2), t.nn.Conv3d(2, 3, 2), t.nn.Linear(2, 2))
        said(utils.convert_conv2d_weight_memory_format(m, t.channels_last) is m)
        said([p.stride() for p in m.parameters()])
        utils.convert_conv3d_weight_memory_format(m, t.channels_last_3d)
        utils.convert_conv2d_weight_memory_format(m, t.contiguous_format)
        said([p.stride() for p in m.parameters()])
        m = filled(t, t.nn.Linear(2, 2))
        vector = utils.parameters_to_vector(m.parameters())
        said(vector, vector.requires_grad)
        utils.convert_parameters.vector_to_parameters(vector * 2, m.parameters())
        said(m.weight, m.bias)
        said.refused(lambda: utils.vector_to_parameters([1.0], m.parameters()))

    agree(script)


def test_skip_init() -> None:
    def script(t: Any, said: Said) -> None:
        skip_init = t.nn.utils.skip_init
        t.manual_seed(0)
        first = t.rand(1)
        t.manual_seed(0)
        m = skip_init(t.nn.Linear, 3, 2, bias=False, dtype=t.float64)
        said(m, m.weight.dtype, m.weight.device, m.weight.requires_grad, t.rand(1).equal(first))
        said.refused(lambda: skip_init(dict), lambda: skip_init(t.nn.ReLU))

    agree(script)


def test_stateless_and_factory_kwargs() -> None:
    def script(t: Any, said: Said) -> None:
        stateless = import_module(f"{t.__name__}.nn.utils.stateless")
        m = filled(t, t.nn.Linear(2, 2))
        m.same = m.weight
        was, two = m.weight, t.full((2, 2), 2.0, dtype=t.float64)
        with stateless._reparametrize_module(m, {"weight": two}):
            said(m.weight is two, m.same is was)
        with stateless._reparametrize_module(m, {"weight": two}, tie_weights=True):
            said(m.weight is two, m.same is two)
        said(m.weight is was, m.same is was)
        strict = stateless._reparametrize_module
        said.refused(lambda: strict(m, {"x": two, "bias": two}, strict=True).__enter__())
        said(stateless.functional_call(m, {"weight": two}, t.ones(1, 2, dtype=t.float64)))
        make = t.nn.factory_kwargs
        said(make(None), make({"device": "cpu", "factory_kwargs": {"dtype": t.float64}}))
        said.refused(
            lambda: make({"x": 1}),
            lambda: make({"dtype": 1, "factory_kwargs": {"dtype": t.float64}}),
        )  # fmt: skip

    agree(script)


def test_data_parallel_without_a_gpu_calls_the_module() -> None:
    def script(t: Any, said: Said) -> None:
        m = filled(t, t.nn.Linear(2, 2))
        wrapped, x = t.nn.DataParallel(m), t.ones(1, 2, dtype=t.float64)
        said(wrapped, list(wrapped.state_dict()), wrapped.device_ids, wrapped.module is m)
        wrapped(x).sum().backward()
        said(m.weight.grad, wrapped(input=x).equal(m(x)))
        parallel = t.nn.parallel
        said(parallel.scatter({"a": 1, "b": [2]}, [0, 1]), parallel.scatter((), [0, 1]))
        said(parallel.gather([None, None], 0))
        said.refused(
            lambda: parallel.DistributedDataParallel(m), lambda: parallel.data_parallel(m, x),
            lambda: parallel.parallel_apply([m], [x, x]),
            lambda: parallel.parallel_apply([m], [x], [{}, {}]),
            lambda: parallel.parallel_apply([m], [x], devices=[0, 0]),
            lambda: parallel.gather([{"a": 1}, {}], 0),
        )  # fmt: skip

    if torch.accelerator.is_available() or leafax.accelerator.is_available():
        pytest.skip("there is a GPU")
    agree(script)


def test_replicas_share_gradients_and_get_parts_of_the_batch() -> None:
    parallel, both = nn.parallel, ["cpu", "cpu"]
    m = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    m[0].tied = m[0].weight
    replicas = parallel.replicate(m, both)
    x = leafax.arange(8.0).view(4, 2)
    args = parallel.scatter((x, {"scale": 2}), both)
    assert [a[1] for a in args] == [{"scale": 2}] * 2
    assert [a[0].tolist() for a in args] == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
    assert parallel.scatter_gather.scatter_kwargs((x,), {}, both)[1] == ({}, {})
    outs = parallel.parallel_apply(replicas, [(a[0],) for a in args])
    joined = parallel.gather([{"y": y} for y in outs], "cpu")["y"]
    assert joined.shape == (4, 2) and replicas[0][0].tied is replicas[0][0].weight
    assert not list(replicas[0].parameters()) and m[1].num_batches_tracked.item() == 2
    joined.pow(3).sum().backward()
    assert m[0].weight.grad is not None and m[1].weight.grad.shape == (2,)
    with pytest.warns(UserWarning, match="all input tensors were scalars"):
        assert parallel.gather([leafax.tensor(1.0), leafax.tensor(2.0)], "cpu").tolist() == [1, 2]
    with leafax.no_grad():
        (alone,) = parallel.replicate(m, ["cpu"], detach=True)
    assert not alone[0].weight.requires_grad


def test_arguments_of_tables_and_sequences_are_refused_in_pytorchs_words() -> None:
    def script(t: Any, said: Said) -> None:
        pooled, places = t.nn.functional.max_pool3d(t.ones(1, 2, 2, 2), 2, return_indices=True)
        bag = t.nn.EmbeddingBag(5, 3, include_last_offset=True)
        said.refused(
            lambda: t.nn.Embedding(5, 3)([1]), lambda: t.nn.functional.embedding(1, t.ones(2, 2)),
            lambda: bag(t.tensor([1]), t.tensor([], dtype=t.int64)),
            lambda: t.nn.utils.rnn.pack_padded_sequence(t.ones(0, 2), []),
            lambda: t.nn.functional.max_unpool3d(pooled, places.int(), 2),
            lambda: t.nn.functional.max_unpool2d(pooled[0], places[0].int(), 2),
        )  # fmt: skip

    agree(script)
