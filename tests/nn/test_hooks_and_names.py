"""Small cases from training scripts, compared with torch: hooks, parameters, module names."""

from __future__ import annotations

import importlib
from typing import Any

from helpers.module_scripts import Said, agree


def test_hooks_see_gradients_that_nothing_needs() -> None:
    def script(t: Any, said: Said) -> None:
        class Two(t.nn.Module):  # type: ignore[misc, name-defined]
            def forward(self, x: Any, y: Any) -> Any:
                return x * 2, x * y

        module = Two()
        module.register_full_backward_hook(lambda _, into, out: said(into, out))
        module(t.ones(2, requires_grad=True), t.ones(2))[0].sum().backward()

    agree(script)


def test_modules_get_new_parameters_where_the_future_says_so() -> None:
    def script(t: Any, said: Said) -> None:
        layer = t.nn.Linear(2, 1)
        with t.no_grad():
            layer.weight.fill_(2.0)
        layer(t.ones(1, 2)).sum().backward()
        before = layer.weight
        t.__future__.set_overwrite_module_params_on_conversion(True)
        try:
            layer.double()
        finally:
            t.__future__.set_overwrite_module_params_on_conversion(False)
        said(layer.weight is before, before.dtype, layer.weight.dtype, layer.weight.grad)
        said(type(layer.weight) is t.nn.Parameter, layer.weight.requires_grad, layer.weight)
        before = layer.weight
        said(layer.float().weight is before)

    agree(script)


def test_tensors_are_put_into_one_vector() -> None:
    def script(t: Any, said: Said) -> None:
        utils = importlib.import_module(f"{t.__name__}._utils")
        tensors = [t.ones(2, 2), t.arange(3.0), t.zeros(1, 2)]
        flat = utils._flatten_dense_tensors(tensors)
        said(flat, *utils._unflatten_dense_tensors(flat, tensors))
        tensors.append(t.ones(2, dtype=t.int64))
        for size in (1, 20, 1000):
            said([[x.shape for x in held] for held in utils._take_tensors(tensors, size)])

    agree(script)


def test_modules_are_found_by_pytorch_names() -> None:
    for name in ("adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "lbfgs", "nadam"):
        _finds(f"optim.{name}")
    for name in ("optim.radam", "optim.rmsprop", "optim.rprop", "optim.sgd"):
        _finds(name)
    for name in _finds("types").Number.__args__:
        assert isinstance(name(1), _finds("types").Number)


def _finds(name: str) -> Any:
    ours = importlib.import_module(f"leafax.{name}")
    theirs = importlib.import_module(f"torch.{name}")
    wanted = [n for n in theirs.__all__ if n[0].isupper()]
    assert wanted and all(hasattr(ours, n) for n in wanted), name
    return ours
