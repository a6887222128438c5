"""State dicts of modules: what they hold, what loading says, and their hooks, as in PyTorch."""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import Any

import numpy as np
import torch
from helpers.module_scripts import Said, agree

import leafax


def net(t: Any) -> Any:
    class Extra(t.nn.Module):  # type: ignore[misc, name-defined]
        _version = 3

        def get_extra_state(self) -> Any:
            return {"epoch": 1}

        def set_extra_state(self, state: Any) -> None:
            self.loaded = state

    m = t.nn.Sequential(t.nn.Module(), Extra(), t.nn.Module())
    m[0].w = t.nn.Parameter(t.tensor([1.0, 2.0]))
    m[0].register_buffer("kept", t.tensor(4))
    m[0].register_buffer("left", t.tensor(5.0), persistent=False)
    m[0].register_buffer("none", None)
    m[2].w = m[0].w
    return m


def test_saving() -> None:
    def script(t: Any, said: Said) -> None:
        m = net(t)
        state = m.state_dict()
        said(list(state), *state.values(), dict(state._metadata), type(state).__name__)
        said(state["0.w"].requires_grad, m.state_dict(keep_vars=True)["0.w"] is m[0].w)
        with t.no_grad():
            state["0.w"].add_(1)
        said(m[0].w, list(m.state_dict(prefix="p.")), list(m.state_dict(destination={})))
        said(list(m.state_dict(OrderedDict(), "q.")))
        seen = [
            m.register_state_dict_pre_hook(lambda m, prefix, keep: said("pre", prefix, keep)),
            m[0].register_state_dict_post_hook(lambda m, d, prefix, meta: said(prefix, meta)),
            m[0]._register_state_dict_hook(lambda m, d, prefix, meta: d.pop(prefix + "kept") and d),
        ]
        said(list(m.state_dict()))
        for handle in seen:
            handle.remove()
        hook = lambda *a: {}  # noqa: E731
        m.register_state_dict_post_hook(hook)
        said.refused(lambda: m.state_dict(), lambda: m._register_state_dict_hook(hook))
        said.refused(lambda: t.nn.Module().get_extra_state())
        said.refused(lambda: t.nn.Module().set_extra_state(1))

    agree(script)


def test_loading() -> None:
    def script(t: Any, said: Said) -> None:
        m = net(t)
        w = m[0].w
        state = copy.deepcopy(m.state_dict())
        state["0.w"] = t.tensor([7.0, 8.0])
        state["0.kept"] = t.tensor([9])
        state["2.w"] = state["0.w"]
        version = w._version
        said(m.load_state_dict(state), w, m[0].kept, m[0].w is w, w._version - version)
        said(m[1].loaded, w.requires_grad)
        with t.no_grad():
            w.add_(1)
        said(state["0.w"], w)
        wrong = OrderedDict(state)
        del wrong["0.w"], wrong["1._extra_state"]
        wrong["2.w"], wrong["0.x"], wrong["other"] = t.ones(3), t.ones(1), t.ones(1)
        wrong["0._extra_state"] = 1
        said.refused(lambda: m.load_state_dict(wrong), lambda: m.load_state_dict([1]))
        said.refused(lambda: m.load_state_dict({**state, "0.w": [1.0, 2.0]}))
        said.refused(lambda: m.load_state_dict(wrong, strict=False))
        del wrong["2.w"]
        said(m.load_state_dict(wrong, strict=False))
        said(m.load_state_dict({**state, "0.w": t.tensor([1, 2], dtype=t.float64)}), w)
        said(m.load_state_dict({"0.w": t.nn.Parameter(t.ones(2))}, strict=False), w)

    agree(script)


def test_assigning() -> None:
    def script(t: Any, said: Said) -> None:
        m = net(t)
        m[0].w.requires_grad_(False)
        given = {"0.w": t.ones(2, dtype=t.float64), "0.kept": t.tensor(1.5)}
        said(m.load_state_dict(given, strict=False, assign=True))
        said(m[0].w, m[0].w.dtype, m[0].w.requires_grad, type(m[0].w).__name__, m[0].kept)
        p = t.nn.Parameter(t.zeros(2))
        m.load_state_dict({"0.w": p}, strict=False, assign=True)
        said(m[0].w is p, p.requires_grad, m[2].w)

    agree(script)


def test_hooks_of_loading() -> None:
    def script(t: Any, said: Said) -> None:
        m = net(t)
        state = m.state_dict()

        def pre(module: Any, given: Any, prefix: str, meta: Any, *rest: Any) -> None:
            said(type(module).__name__, prefix, meta, rest)
            given[prefix + "w"] = given.pop(prefix + "v")

        m[0].register_load_state_dict_pre_hook(pre)
        m[1]._register_load_state_dict_pre_hook(lambda *a: said(len(a), a[1], a[2]))
        m.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
        m[2].register_load_state_dict_post_hook(lambda m, keys: said(keys))
        given = OrderedDict(state)
        given._metadata = state._metadata  # type: ignore[attr-defined]
        given["0.v"] = given.pop("0.w") * 5
        del given["2.w"]
        said(m.load_state_dict(given), m[0].w, list(given))
        m.register_load_state_dict_post_hook(lambda m, keys: keys)
        said.refused(lambda: m.load_state_dict(given, strict=False))

    agree(script)


def test_states_of_the_other_library() -> None:
    theirs = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)).eval()
    ours = leafax.nn.Sequential(leafax.nn.Linear(2, 3), leafax.nn.BatchNorm1d(3)).eval()
    state = {k: leafax.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()}
    assert str(ours.load_state_dict(state)) == "<All keys matched successfully>"
    x = np.ones((4, 2), np.float32)
    got, want = ours(leafax.from_numpy(x)), theirs(torch.from_numpy(x))
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), atol=1e-6)
    back = {k: torch.from_numpy(v.numpy().copy()) for k, v in ours.state_dict().items()}
    assert str(theirs.load_state_dict(back)) == "<All keys matched successfully>"


def test_a_loaded_weight_keeps_its_optimizer_and_runs_no_program() -> None:
    m = leafax.nn.Linear(2, 2)
    optimizer = leafax.optim.SGD(m.parameters(), lr=0.5)
    state = {"weight": leafax.ones(2, 2), "bias": leafax.ones(2)}
    leafax.synchronize()
    before = str(leafax.explain())
    m.load_state_dict(state)
    assert str(leafax.explain()) == before
    m(leafax.ones(1, 2)).sum().backward()
    optimizer.step()
    assert m.weight.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert state["weight"].tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_loading_counts_as_a_write_of_what_a_graph_saved() -> None:
    def script(t: Any, said: Said) -> None:
        m = t.nn.Linear(2, 1, bias=False)
        x = t.ones(1, 2, requires_grad=True)
        y = m(m(x) * t.ones(2)).sum()
        y.item()
        m.load_state_dict({"weight": t.zeros(1, 2)})
        try:
            y.backward()
        except RuntimeError as error:
            said("modified by an inplace operation" in str(error))

    agree(script)


def test_one_program_a_step_after_a_model_was_made() -> None:
    """Initial weights are drawn outside the first step; else the second would compile again."""
    leafax.synchronize()
    m = leafax.nn.Sequential(leafax.nn.Linear(3, 5), leafax.nn.Linear(5, 1))
    optimizer = leafax.optim.SGD(m.parameters(), lr=0.1)
    leafax.explain(clear=True)
    for _ in range(3):
        loss = m(leafax.randn(4, 3)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    leafax.synchronize()
    steps = [run for run in leafax.explain() if run.reason == "optimizer.step()"]
    assert len(steps) == 3 and sum(run.how == "compiled" for run in steps) <= 1
