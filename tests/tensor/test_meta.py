"""Tensors on the device `meta`: shapes, dtypes and histories without data, as PyTorch has them."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

import leafax
from leafax.functional.program.meta import NO_DATA


def shown(x: Any) -> Any:
    if isinstance(x, (torch.Tensor, leafax.Tensor)):
        return repr(x), tuple(x.shape), x.stride(), str(x.dtype), str(x.device), x.requires_grad
    if isinstance(x, (tuple, list)):
        return [shown(y) for y in x]
    return x if isinstance(x, (bool, int, float, str, type(None))) else repr(x)


def outcome(call: Callable[[Any], Any], lib: Any) -> Any:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            found = shown(call(lib))
        except Exception as e:
            found = type(e).__name__, str(e)
    return found, [str(w.message) for w in told if w.category is UserWarning]


def meta(t: Any, *shape: int, **kwargs: Any) -> Any:
    return t.ones(*(shape or (2, 3)), device="meta", **kwargs)


def in_block(t: Any) -> Any:
    with t.device("meta"):
        made = (
            t.tensor(1.0), t.zeros(2, dtype=t.int32), t.arange(4), t.randn(2, 2), t.eye(3),
            t.as_tensor([2.0]), t.full((2,), 1.5), t.linspace(0, 1, 3), t.get_default_device(),
        )  # fmt: skip
        model = t.nn.Sequential(
            t.nn.Conv2d(3, 4, 3), t.nn.BatchNorm2d(4), t.nn.LSTM(4, 5), t.nn.Embedding(7, 4, 0)
        )
        with t.device("cpu"):
            inner = t.zeros(2)
    return *made, *model.state_dict().values(), inner, t.zeros(1), t.get_default_device()


def default(t: Any) -> Any:
    try:
        t.set_default_device("meta")
        return (
            t.get_default_device(),
            t.zeros(2),
            t.nn.Linear(2, 3).weight,
            t.zeros(1, device="cpu"),
        )
    finally:
        t.set_default_device(None)


def backward(t: Any, looks: bool) -> Any:
    x = meta(t, requires_grad=True)
    real = t.ones(2, requires_grad=True)
    other = real * 3
    y = t.nn.functional.batch_norm(x, None, None, training=True).exp()
    if looks:
        other.tolist()
    (y * x).sum().backward()
    other.sum().backward()
    return x.grad, y, real.grad.tolist()


def trained(t: Any) -> Any:
    model = t.nn.Linear(3, 2, device="meta")
    optimizer = t.optim.Adam(model.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        model(meta(t)).pow(2).mean().backward()
        t.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.weight, model.weight.grad, optimizer.state[model.weight]["exp_avg"]


def written(t: Any) -> Any:
    x = meta(t)
    view = x[0]
    x.add_(1).normal_().uniform_(0, 1)
    x[1] = 2.0
    view.zero_()
    x.copy_(t.zeros(2, 3))
    return x, view, view._base is x, x._version


def loaded(t: Any, assign: bool) -> Any:
    model = t.nn.Linear(2, 3, device="meta")
    model.load_state_dict({"weight": t.zeros(3, 2), "bias": t.ones(3)}, assign=assign)
    return list(model.state_dict().values()), model.weight.requires_grad


def through_file(t: Any, **kwargs: Any) -> Any:
    file = io.BytesIO()
    t.save([meta(t, requires_grad=True), meta(t).t(), t.ones(2)], file)
    file.seek(0)
    return t.load(file, **kwargs)


CASES: dict[str, Callable[[Any], Any]] = {
    "facts": lambda t: (
        (x := meta(t)), x.is_meta, x.device, x.get_device(), x.data_ptr(), x.is_leaf, x.numel(),
        t.ones(1).is_meta, x.is_cpu, x.nbytes, x.to("meta") is x,
    ),
    "repr": lambda t: (
        meta(t, 0), meta(t, 2, 0), meta(t, dtype=t.int64), meta(t, dtype=t.float64),
        meta(t, requires_grad=True), meta(t, requires_grad=True) * 2, t.nn.Parameter(meta(t)),
        f"{meta(t)[0, 0]}",
    ),
    "ops": lambda t: (
        (x := meta(t)) + 1, x @ x.t(), x.sum(0), x.long().argmax(1), x > 0, x[:, 1:],
        x[None].expand(4, -1, -1), t.cat([x, x]), x.permute(1, 0) * 2, t.stack([x, x], 1),
        x[t.tensor([0])], x * t.tensor(2.0), t.nn.functional.softmax(x, -1), x.unbind(),
        x.new_zeros(2), t.zeros_like(x), len(x), t.nn.functional.dropout(x),
        t.where(x > 0, x, 0.0), x.topk(2), x.view(3, 2), x.half(),
    ),
    "made elsewhere": lambda t: (
        t.zeros_like(meta(t), device="cpu"), meta(t).new_ones(2, device="cpu"),
        t.ones(2).to("meta"), t.ones(2).to(meta(t, dtype=t.float64)),
        t.ones(2).new_zeros(1, device="meta"),
        t.as_tensor(t.ones(2), device="meta"),
    ),
    "block": in_block,
    "default": default,
    "backward": lambda t: backward(t, looks=False),
    "backward after a cut": lambda t: backward(t, looks=True),
    "training": trained,
    "writes": written,
    "copies": lambda t: (
        copy.deepcopy(meta(t, requires_grad=True)), meta(t).clone(),
        pickle.loads(pickle.dumps(meta(t))),
    ),
    "load, which copies nothing": lambda t: loaded(t, False),
    "load and assign": lambda t: loaded(t, True),
    "files": through_file,
    "files on the CPU": lambda t: through_file(t, map_location="cpu"),
    "files on meta": lambda t: through_file(t, map_location="meta"),
    "to_empty": lambda t: (
        (m := t.nn.Linear(2, 3, device="meta")).weight, m.to_empty(device="cpu").weight.shape,
        m.weight.device, m.to("meta").bias, m.weight.requires_grad,
    ),
    "module to": lambda t: t.nn.Linear(2, 3, device="meta").to("cpu"),
    "cpu": lambda t: meta(t).cpu(),
    "to": lambda t: meta(t).to("cpu"),
    "item": lambda t: meta(t)[0, 0].item(),
    "bool": lambda t: bool(meta(t).sum() > 0),
    "float": lambda t: float(meta(t).sum()),
    "int": lambda t: int(meta(t, dtype=t.int64).sum()),
    "tolist": lambda t: meta(t).tolist(),
    "numpy": lambda t: meta(t).numpy(),
    "copy_ to the CPU": lambda t: t.ones(2, 3).copy_(meta(t)),
    "add": lambda t: meta(t) + t.ones(2, 3),
    "add to the CPU": lambda t: t.ones(2, 3) + meta(t),
    "cat": lambda t: t.cat([meta(t), t.ones(2, 3)]),
    "where": lambda t: t.where(t.ones(2, 3) > 0, meta(t), t.ones(2, 3)),
    "grad": lambda t: setattr(t.ones(2, 3), "grad", meta(t)),
    "data": lambda t: setattr(t.ones(2, 3), "data", meta(t)),
    "generator": lambda t: t.Generator("meta"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_as_in_torch(name: str) -> None:
    assert outcome(CASES[name], leafax) == outcome(CASES[name], torch)


def test_nothing_is_computed() -> None:
    leafax.explain(clear=True)
    x = leafax.ones(1 << 20, 1 << 20, device="meta", requires_grad=True)
    y = (x @ x).exp()
    y.sum().backward()
    leafax.synchronize()
    assert x.grad.shape == x.shape
    assert all(run.nodes == 0 for run in leafax.explain())


@pytest.mark.parametrize("look", ["nonzero", "unique", "jax"])
def test_what_only_data_can_tell(look: str) -> None:
    with pytest.raises((NotImplementedError, TypeError), match="no data|meta device"):
        getattr(leafax.ones(2, device="meta"), look)()


def test_words() -> None:
    with pytest.raises(NotImplementedError) as error:
        leafax.ones(2, device="meta").tolist()
    assert str(error.value) == NO_DATA
