"""`functorch`, which PyTorch's distribution has beside `torch`: modules as functions."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
import torch

import leafax

TOLD = "`functorch.{}` is deprecated as of PyTorch 2.0 and will be deleted"


def packages() -> Any:
    ours = importlib.import_module("leafax._functorch.functorch")
    return (leafax, ours), (torch, importlib.import_module("functorch"))


def normed_layers(lib: Any, seed: int = 0) -> Any:
    values = np.random.default_rng(seed)
    layer = lib.nn.Linear(3, 3, dtype=lib.float64)
    model = lib.nn.Sequential(layer, lib.nn.BatchNorm1d(3, dtype=lib.float64), layer)  # tied
    with lib.no_grad():
        for p in model.parameters():
            p.copy_(lib.from_numpy(values.normal(size=tuple(p.shape))))
    return model


@pytest.mark.parametrize("tracks", [False, True])
def test_a_module_becomes_a_function_of_its_tensors(tracks: bool) -> None:
    def seen(lib: Any, functorch: Any) -> list[Any]:
        model = normed_layers(lib).eval()
        with pytest.warns(FutureWarning, match=TOLD.format("make_functional_with_buffers")):
            f, params, buffers = functorch.make_functional_with_buffers(model, not tracks)
        x = lib.arange(12, dtype=lib.float64).reshape(4, 3).sin()
        log = [f.param_names, f.buffer_names, [p.requires_grad for p in params]]
        log.append(params[0] is not model[0].weight and f.stateless_model[0].weight.is_meta)

        def loss(params: Any) -> Any:
            return f(params, buffers, x).square().sum()

        gradients = lib.func.grad(loss)(params)
        if tracks:
            loss(params).backward()
            gradients = [*gradients, *[p.grad for p in params]]
        log += [np.asarray(t.detach()) for t in (*gradients, *buffers)]
        return log

    ours, theirs = (seen(*package) for package in packages())
    assert ours[:4] == theirs[:4] and len(ours) == len(theirs)
    for a, b in zip(ours[4:], theirs[4:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_modules_are_stacked_for_vmap() -> None:
    def seen(lib: Any, functorch: Any) -> list[Any]:
        models = [normed_layers(lib, seed).eval() for seed in range(2)]
        with pytest.warns(FutureWarning, match=TOLD.format("combine_state_for_ensemble")):
            f, params, buffers = functorch.combine_state_for_ensemble(models)
        x = lib.ones(4, 3, dtype=lib.float64)
        with pytest.warns(FutureWarning, match=TOLD.format("vmap")):
            out = functorch.vmap(f, (0, 0, None))(params, buffers, x)
        said = []
        for wrong in (
            [],
            [models[0], normed_layers(lib).train()],
            [models[0], lib.nn.Tanh().eval()],
        ):
            with pytest.warns(FutureWarning), pytest.raises(RuntimeError) as caught:
                functorch.combine_state_for_ensemble(wrong)
            said.append(str(caught.value))
        with pytest.warns(FutureWarning), pytest.raises(RuntimeError) as caught:
            functorch.make_functional(models[0])
        return [np.asarray(out.detach()), *said, str(caught.value)]

    (ours, *our_words), (theirs, *their_words) = (seen(*package) for package in packages())
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    assert our_words == their_words


def test_a_module_without_buffers_takes_its_parameters_only() -> None:
    def seen(lib: Any, functorch: Any) -> Any:
        model = lib.nn.Linear(2, 1, bias=False, dtype=lib.float64)
        with lib.no_grad():
            model.weight.fill_(0.5)
        with pytest.warns(FutureWarning, match=TOLD.format("make_functional")):
            f, params = functorch.make_functional(model)
        return f(params, lib.ones(3, 2, dtype=lib.float64)).tolist(), isinstance(
            f, functorch.FunctionalModule
        )

    ours, theirs = (seen(*package) for package in packages())
    assert ours == theirs
