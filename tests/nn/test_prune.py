"""`nn.utils.prune` against torch."""

from __future__ import annotations

import copy
import pickle
from importlib import import_module
from typing import Any

import numpy as np
from helpers.module_scripts import Said, agree

import leafax
from leafax import nn


def prune_of(t: Any) -> Any:
    return import_module(f"{t.__name__}.nn.utils.prune")


def filled(t: Any, module: Any) -> Any:
    """The same parameters in both libraries, in float64."""
    draw = np.random.default_rng(0)
    module = module.double()
    for p in module.parameters():
        p.data = t.from_numpy(draw.standard_normal(tuple(p.shape)))
    return module


def members(m: Any) -> list[Any]:
    return [list(m._parameters), list(m._buffers), list(m.state_dict()), len(m._forward_pre_hooks)]


def test_methods() -> None:
    def script(t: Any, said: Said) -> None:
        prune = prune_of(t)
        scores = t.arange(12.0, dtype=t.float64).view(3, 2, 2)
        mask = (t.arange(12).view(3, 2, 2) % 3 != 0).double()
        for apply in (
            lambda m: prune.l1_unstructured(m, "weight", 5),
            lambda m: prune.l1_unstructured(m, "weight", 0.5, importance_scores=scores),
            lambda m: prune.l1_unstructured(m, "weight", 0),
            lambda m: prune.ln_structured(m, "weight", 1, 2, 0),
            lambda m: prune.ln_structured(m, "weight", 0.5, 1, -1),
            lambda m: prune.ln_structured(m, "weight", 1, float("inf"), 1, scores),
            lambda m: prune.ln_structured(m, "weight", 0.0, 2, 1),
            lambda m: prune.custom_from_mask(m, "weight", mask),
            lambda m: prune.identity(m, "weight"),
        ):
            m = filled(t, t.nn.Conv1d(2, 3, 2))
            was = m.weight
            said(apply(m) is m, *members(m), m.weight_orig is was, prune.is_pruned(m))
            said(m.weight_mask, m.weight.detach(), m.weight_mask.dtype)
            said(*(type(h).__name__ for h in m._forward_pre_hooks.values()))
        m(t.ones(1, 2, 3, dtype=t.float64)).sum().backward()
        said(m.weight_orig.grad, m.weight.is_leaf)

    agree(script)


def test_methods_on_top_of_others() -> None:
    def script(t: Any, said: Said) -> None:
        prune = prune_of(t)
        m = filled(t, t.nn.Linear(4, 3))
        prune.l1_unstructured(m, "weight", 3)
        prune.ln_structured(m, "weight", 1, 2, 0)
        said(m.weight_mask)
        prune.ln_structured(m, "weight", 0.5, 1, -1)
        said(m.weight_mask)
        prune.l1_unstructured(m, "weight", 0.5)
        prune.l1_unstructured(m, "bias", 1)
        (hook, other) = m._forward_pre_hooks.values()
        said(m.weight_mask, type(hook).__name__, len(hook), [type(x).__name__ for x in hook])
        said(type(hook[0]).__name__, type(other).__name__, hook._tensor_name, *members(m))
        optimizer = t.optim.SGD(m.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            m(t.ones(1, 4, dtype=t.float64)).pow(2).sum().backward()
            optimizer.step()
        said(m.weight.detach().numpy().round(9), m.weight_orig.grad.numpy().round(9))
        said.refused(lambda: copy.deepcopy(m), lambda: pickle.dumps(m))
        m.weight, m.bias = m.weight.detach(), m.bias.detach()  # what has a graph is not copied
        for c in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
            said(c(t.ones(1, 4, dtype=t.float64)).equal(m(t.ones(1, 4, dtype=t.float64))))
        fresh = prune.identity(prune.identity(t.nn.Linear(4, 3).double(), "weight"), "bias")
        said(fresh.load_state_dict(m.state_dict()))
        said(fresh(t.ones(1, 4, dtype=t.float64)).equal(m(t.ones(1, 4, dtype=t.float64))))
        original = m.weight_orig
        said(prune.remove(m, "weight") is m, *members(m), m.weight is original)
        said(m.weight.detach().numpy().round(9), prune.is_pruned(m))
        prune.remove(m, "bias")
        said(prune.is_pruned(m), prune.is_pruned(t.nn.Sequential(m)), *members(m))

    agree(script)


def test_global() -> None:
    def script(t: Any, said: Said) -> None:
        prune = prune_of(t)
        a, b = filled(t, t.nn.Linear(3, 2)), filled(t, t.nn.Conv1d(1, 2, 2))
        pairs = ((a, "weight"), (b, "weight"))
        prune.global_unstructured(pairs, prune.L1Unstructured, amount=4)
        said(a.weight_mask, b.weight_mask)
        scores = {(a, "weight"): t.arange(6.0, dtype=t.float64).view(2, 3)}
        prune.global_unstructured(pairs, prune.L1Unstructured, scores, amount=0.5)
        said(a.weight_mask, b.weight_mask, *members(a))
        said.refused(
            lambda: prune.global_unstructured(1, prune.L1Unstructured, amount=1),
            lambda: prune.global_unstructured(pairs, prune.L1Unstructured, [], amount=1),
            lambda: prune.global_unstructured(pairs, prune.RandomStructured, amount=1),
        )

    agree(script)


def test_random_methods_prune_as_much_as_they_are_told() -> None:
    leafax.manual_seed(0)
    prune = prune_of(leafax)
    m = nn.Linear(6, 4)
    prune.random_unstructured(m, "weight", 7)
    assert m.weight_mask.sum().item() == 17
    prune.random_unstructured(m, "weight", 0.5)  # of those that are left: 8.5, rounded to even
    assert m.weight_mask.sum().item() == 9
    prune.random_unstructured(m, "bias", 0)
    assert m.bias_mask.sum().item() == 4
    m = nn.Linear(6, 4)
    prune.random_structured(m, "weight", 2, dim=0)
    assert sorted(m.weight_mask.sum(1).tolist()) == [0, 0, 6, 6]
    prune.random_structured(m, "weight", 0.5, dim=-1)
    assert sorted(m.weight_mask.sum(0).tolist()) == [0, 0, 0, 2, 2, 2]
    prune.random_structured(m, "weight", 0, dim=0)
    assert sorted(m.weight_mask.sum(0).tolist()) == [0, 0, 0, 2, 2, 2]


def test_refusals_leave_the_module_as_it_was() -> None:
    def script(t: Any, said: Said) -> None:
        prune = prune_of(t)
        m = filled(t, t.nn.Linear(2, 2))
        said.refused(
            lambda: prune.l1_unstructured(m, "weight", "half"),
            lambda: prune.l1_unstructured(m, "weight", 1.1),
            lambda: prune.random_unstructured(m, "weight", -0.5),
            lambda: prune.random_unstructured(m, "weight", -1),
            lambda: prune.l1_unstructured(m, "weight", 5),
            lambda: prune.ln_structured(m, "weight", 3, 2, 0),
            lambda: prune.ln_structured(m, "bias", 1, 2, 0),
            lambda: prune.random_structured(m, "bias", 1, 0),
            lambda: prune.random_structured(m, "weight", 1, 2),
            lambda: prune.custom_from_mask(m, "weight", t.ones(3)),
            lambda: prune.l1_unstructured(m, "weight", 1, importance_scores=t.ones(3)),
            lambda: prune.remove(m, "weight"), lambda: prune.l1_unstructured(m, "x", 1),
            lambda: prune.BasePruningMethod(),
            lambda: prune.L1Unstructured(1).prune(t.ones(2), importance_scores=t.ones(3)),
        )  # fmt: skip
        said(*members(m), prune.is_pruned(m))
        container = prune.PruningContainer()
        container._tensor_name = "weight"
        other = prune.Identity()
        other._tensor_name = "bias"
        said.refused(
            lambda: container.add_pruning_method(m), lambda: container.add_pruning_method(other)
        )

        class Odd(prune.BasePruningMethod):  # type: ignore[misc, name-defined]
            PRUNING_TYPE = "odd"

            def compute_mask(self, t: Any, default_mask: Any) -> Any:
                return default_mask

        class NoDim(Odd):
            PRUNING_TYPE = "structured"

        class FarDim(NoDim):
            dim = -3

        for kind in (Odd, NoDim, FarDim):
            method = kind()
            method._tensor_name = "weight"
            held = prune.PruningContainer(method)
            one = t.ones(2, 2)
            said(len(held), held._tensor_name)
            said.refused(lambda held=held, one=one: held.compute_mask(one, one))

    agree(script)


def test_tensors_without_a_module() -> None:
    def script(t: Any, said: Said) -> None:
        prune = prune_of(t)
        x = t.tensor([[1.0, -3.0], [2.0, 0.5]])
        said(prune.L1Unstructured(2).prune(x), prune.LnStructured(1, 2, 0).prune(x))
        said(prune.L1Unstructured(1).prune(x, importance_scores=-x.flip(0)))
        said(prune.Identity().prune(x, default_mask=t.eye(2)))

    agree(script)
