"""Freezing, groups, watching, adapters and checkpoints of nn modules."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import torch as reference

import leafax
import leafax.nn.functional as F
from leafax import nn
from leafax.adapters import lora, orbax, safetensors, summary
from leafax.adapters.freezing import freeze, groups, layerwise_groups, mask, unfreeze, watch

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 2, 4, 4)).astype("float32")
Y = RNG.normal(size=(6, 3)).astype("float32")


def net(t: Any = leafax) -> Any:
    """Features with a norm and dropout, and a head."""
    features = t.nn.Sequential(
        t.nn.Conv2d(2, 4, 3, padding=1), t.nn.BatchNorm2d(4), t.nn.ReLU(), t.nn.Dropout(0.5)
    )
    layers = {"features": features, "flat": t.nn.Flatten(), "hidden": t.nn.Linear(64, 5),
              "head": t.nn.Linear(5, 3)}  # fmt: skip
    return t.nn.Sequential(t.nn.modules.container.OrderedDict(layers))


def pair() -> tuple[Any, Any]:
    """The same network of both libraries."""
    reference.manual_seed(0)
    theirs, ours = net(reference), net()
    ours.load_state_dict({n: leafax.from_numpy(p.numpy()) for n, p in theirs.state_dict().items()})
    return ours, theirs


def loss_of(t: Any, module: Any) -> Any:
    return ((module(t.from_numpy(X)) - t.from_numpy(Y)) ** 2).mean()


def steps(t: Any, module: Any, optimizer: Any, n: int = 3) -> list[float]:
    losses = []
    for _ in range(n):
        optimizer.zero_grad()
        loss = loss_of(t, module)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def trained(module: Any) -> list[str]:
    return [name for name, p in module.named_parameters() if p.requires_grad]


# ---------------------------------------------------------------- freezing


def test_a_frozen_part_trains_as_by_hand_in_pytorch() -> None:
    """Frozen by hand there: `requires_grad_(False)`, and `eval()` of norm and dropout."""
    ours, theirs = pair()
    assert freeze(ours, "features", stats=True) is ours
    ours.train()
    theirs.features.requires_grad_(False).eval()
    before = {n: t.tolist() for n, t in ours.state_dict().items() if n.startswith("features")}
    optimizer = leafax.optim.AdamW(ours.parameters(), lr=0.01, weight_decay=0.1)
    by_hand = reference.optim.AdamW(
        [p for p in theirs.parameters() if p.requires_grad], lr=0.01, weight_decay=0.1
    )
    np.testing.assert_allclose(
        steps(leafax, ours, optimizer), steps(reference, theirs, by_hand), rtol=1e-4
    )
    after = ours.state_dict()
    assert all(after[n].tolist() == before[n] for n in before), "statistics too"
    for name, p in theirs.named_parameters():
        np.testing.assert_allclose(after[name], p.detach(), rtol=1e-4, atol=1e-6, err_msg=name)
    assert trained(ours) == ["hidden.weight", "hidden.bias", "head.weight", "head.bias"]
    assert len(optimizer.state) == 4
    assert all(p.grad is None for p in ours.features.parameters())
    assert mask(ours) == {n: not n.startswith("features") for n, _ in ours.named_parameters()}


def test_what_is_frozen_has_no_backward_pass() -> None:
    module = net()

    def cost() -> float:
        loss = loss_of(leafax, module)
        loss.backward()
        grads = [p.grad for p in module.parameters() if p.requires_grad]
        program = leafax.functional.lower([loss, *grads], [*module.parameters()])
        module.zero_grad()
        return program.cost()["flops"]  # type: ignore[no-any-return]

    everything = cost()
    freeze(module, "features", "hidden")
    assert cost() < 0.6 * everything


def modes(module: Any) -> dict[str, bool]:
    return {path: part.training for path, part in module.named_modules()}


def test_statistics_and_dropout_stay_off_whatever_train_says() -> None:
    module = freeze(net(), "features", stats=True)
    for copied in (module, copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        found = modes(copied.train())
        assert all(on is not path.startswith("features") for path, on in found.items())
        assert copied.eval() is copied and not any(modes(copied).values())
    unfreeze(module, "features.0")
    found = modes(module.train())
    assert found["features.3"] and not found["features.1"], "the norm is whole, what is around not"
    unfreeze(module)
    assert all(modes(module).values()) and all("train" not in vars(m) for m in module.modules())
    freeze(module, "features.1", stats=True)
    assert [path for path, on in modes(module).items() if not on] == ["features.1"]
    loss_of(leafax, module).item()
    assert module.features[1].num_batches_tracked == 0
    unfreeze(module.eval(), "features.1")
    assert not any(modes(module).values()) and all(modes(module.train()).values())


def test_patterns_classes_and_depth() -> None:
    module = net()
    assert trained(freeze(module, "**.bias", re.compile("head.*"))) == [
        "features.0.weight", "features.1.weight", "hidden.weight",
    ]  # fmt: skip
    assert trained(freeze(unfreeze(module), nn.BatchNorm2d, lambda path, p: p.dim() == 1)) == [
        "features.0.weight", "hidden.weight", "head.weight",
    ]  # fmt: skip
    assert trained(freeze(unfreeze(module), all_but_last=1)) == ["head.weight", "head.bias"]
    assert len(trained(unfreeze(module, last=2))) == 4
    blocks = nn.ModuleDict({"stem": nn.Linear(2, 2), "layers": nn.ModuleList(
        nn.Linear(2, 2) for _ in range(4)), "out": nn.Linear(2, 1)})  # fmt: skip
    freeze(blocks, all_but_last=1, blocks="layers.*")
    assert trained(blocks) == ["layers.3.weight", "layers.3.bias", "out.weight", "out.bias"]
    with pytest.raises(ValueError, match="pattern `faetures` matches none of the .* `features"):
        freeze(module, "faetures")
    with pytest.raises(ValueError, match="no submodule of class `LSTM`; the nearest are"):
        freeze(module, nn.LSTM)
    with pytest.raises(TypeError, match="expected a `leafax.nn.Module` or a model of .* got `int`"):
        freeze(3)
    tied = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.Linear(2, 2)})
    tied.b.weight = tied.a.weight
    assert trained(freeze(tied, "a.weight")) == ["a.bias", "b.bias"]


def test_groups_and_rates_by_path() -> None:
    module = net()
    made = groups(module, {("**.bias", nn.BatchNorm2d): {"weight_decay": 0.0}, "head": {"lr": 0.5}})
    optimizer = leafax.optim.SGD(made, lr=0.1, weight_decay=0.2)
    assert [(g["lr"], g["weight_decay"], g["param_names"]) for g in optimizer.param_groups] == [
        (0.1, 0.0, ["features.0.bias", "features.1.weight", "features.1.bias", "hidden.bias",
                    "head.bias"]),
        (0.5, 0.2, ["head.weight"]),
        (0.1, 0.2, ["features.0.weight", "hidden.weight"]),
    ]  # fmt: skip
    rates = layerwise_groups(module, 0.1, 0.5)
    assert [(g["lr"], g["params"][0][0]) for g in rates] == [
        (0.1, "head.weight"), (0.05, "hidden.weight"), (0.025, "features.0.weight"),
    ]  # fmt: skip


def test_thawed_parameters_start_afresh_and_the_table_tells() -> None:
    module = freeze(net(), "features", "hidden")
    optimizer = leafax.optim.Adam(module.parameters(), lr=0.01)
    steps(leafax, module, optimizer, 2)
    unfreeze(module, last=2)
    steps(leafax, module, optimizer, 1)
    state = {n: optimizer.state.get(p) for n, p in module.named_parameters()}
    assert state["features.0.weight"] is None
    assert (state["hidden.weight"]["step"], state["head.weight"]["step"]) == (1, 3)
    rows = {r.path: (r.kind, r.state_nbytes) for r in summary(module, optimizer)}
    assert rows["features.0.weight"] == ("frozen", 0)
    assert rows["head.bias"] == ("trainable", 2 * 3 * 4 + 4)
    assert rows["features.1.running_var"] == ("buffer", 0)


# ---------------------------------------------------------------- watching


def test_activations_and_gradients_are_seen_inside_the_step() -> None:
    ours, theirs = pair()
    freeze(ours, "features", "hidden")
    optimizer = leafax.optim.SGD(ours.parameters(), lr=0.1)
    steps(leafax, ours, optimizer, 3)
    assert leafax._runtime.cut.history[-1].how == "cached"
    held: dict[str, Any] = {}
    for name in ("features.1", "hidden"):
        theirs.get_submodule(name).register_forward_hook(
            lambda m, args, out, name=name: (out.retain_grad(), held.__setitem__(name, out))[0]
        )
    theirs.load_state_dict({n: reference.tensor(t.numpy()) for n, t in ours.state_dict().items()})
    leafax.manual_seed(0)
    ours.features[3].p = theirs.features[3].p = 0.0
    with watch(ours, "features/1", re.compile("hid.*")) as seen:
        loss_of(leafax, ours).backward()
    loss_of(reference, theirs).backward()
    assert list(seen) == ["features.1", "hidden"]
    for name, t in held.items():
        np.testing.assert_allclose(seen[name].detach(), t.detach(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(seen[name].grad, t.grad, rtol=1e-4, atol=1e-6)
    loss_of(leafax, ours)
    assert len(seen.every["hidden"]) == 1 and not ours.hidden._forward_hooks, "it has ended"
    with pytest.raises(ValueError, match="`hiden` matches no submodule; the nearest are `hidden`"):
        watch(ours, "hiden")


# ---------------------------------------------------------------- low-rank adapters


class Self(nn.MultiheadAttention):
    """Attention to itself, without the weights."""

    def forward(self, x: Any) -> Any:  # type: ignore[override]
        return super().forward(x, x, x, need_weights=False)[0]


WIDE = RNG.normal(size=(2, 4, 6)).astype("float32")
LAYERS: dict[str, tuple[Any, Any, dict[str, tuple[int, int]]]] = {
    "linear": (lambda: nn.Linear(6, 9), WIDE, {"weight": (6, 9)}),
    "convolution": (lambda: nn.Conv2d(2, 5, (3, 2), 2, 1), X, {"weight": (12, 5)}),
    "reflected": (lambda: nn.Conv1d(4, 5, 3, padding=1, padding_mode="reflect"), WIDE,
                  {"weight": (12, 5)}),
    "embedding": (lambda: nn.Embedding(7, 5, padding_idx=2), np.array([[1, 2], [6, 1]]),
                  {"weight": (7, 5)}),
}  # fmt: skip
SUMMED: dict[str, tuple[Any, Any, dict[str, tuple[int, int]]]] = {
    "groups": (lambda: nn.Conv1d(4, 6, 3, groups=2), WIDE, {"weight": (6, 6)}),
    "transposed": (lambda: nn.ConvTranspose1d(4, 5, 3), WIDE, {"weight": (4, 15)}),
    "attention": (lambda: Self(6, 2), WIDE, {"in_proj_weight": (6, 18), "out_proj.weight": (6, 6)}),
    "recurrent": (lambda: nn.GRU(6, 3), WIDE, {"weight_ih_l0": (6, 9), "weight_hh_l0": (3, 9)}),
}  # fmt: skip


@pytest.mark.quick(3)
@pytest.mark.parametrize("name", [*LAYERS, *SUMMED])
def test_outputs_and_gradients_are_those_of_the_sum(name: str) -> None:
    make, array, shapes = (LAYERS | SUMMED)[name]
    leafax.manual_seed(0)
    layer, x = make(), leafax.from_numpy(array)

    def first(out: Any) -> Any:
        return out[0] if isinstance(out, tuple) else out

    base, kind = first(layer(x)).detach(), type(layer)
    held = {n: t.tolist() for n, t in layer.state_dict().items()}
    adapter = lora.add(layer, [*shapes], rank=2, alpha=3.0)
    assert {n: (f.a.shape[0], f.b.shape[1]) for n, f in adapter.factors.items()} == shapes
    np.testing.assert_allclose(first(layer(x)).detach(), base, atol=1e-6)
    for p in adapter.parameters():
        p.data = leafax.from_numpy(RNG.normal(size=tuple(p.shape)).astype("float32") * 0.3)
    out = first(layer(x))
    grads = leafax.autograd.grad((out**2).sum(), [*adapter.parameters()])
    program = leafax.functional.lower([out, *grads], [*adapter.parameters()])
    size = ",".join(map(str, layer.get_parameter(next(iter(shapes))).shape))
    sums_made = re.findall(rf"\w:f32\[{size}\] = add", str(program.jaxpr))
    assert bool(sums_made) is (name in SUMMED), "linear layers build no sum"
    sums = {}
    for path, f in adapter.factors.items():
        w = layer.get_parameter(path)
        more = f.a @ f.b
        more = (more if name in ("embedding", "transposed") else more.mT).reshape(w.shape)
        sums[path] = w.detach() + more * 1.5
    by_hand = first(leafax.func.functional_call(make_like(make, layer), sums, (x,)))
    np.testing.assert_allclose(out.detach(), by_hand.detach(), rtol=1e-4, atol=1e-5)
    wanted = leafax.autograd.grad((by_hand**2).sum(), [*adapter.parameters()])
    for mine, theirs in zip(grads, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-4)
    assert {n: t.tolist() for n, t in layer.state_dict().items()} == held, "the base stays"
    adapter.merge()
    assert type(layer) is kind
    np.testing.assert_allclose(first(layer(x)).detach(), out.detach(), rtol=1e-4, atol=1e-5)
    adapter.unmerge()
    assert {n: t.tolist() for n, t in layer.state_dict().items()} == held
    adapter.remove()
    np.testing.assert_allclose(first(layer(x)).detach(), base, atol=1e-6)


def make_like(make: Any, layer: Any) -> Any:
    plain = make()
    plain.load_state_dict(layer.state_dict())
    return plain


def test_adapters_train_alone_and_are_saved_and_copied(tmp_path: Path) -> None:
    module = net()
    before = {n: t.tolist() for n, t in module.state_dict().items() if "num" not in n}
    adapter = lora.add(module.eval(), ["features.0.weight", nn.Linear], rank=2)
    assert repr(adapter) == "Lora(3 kernels, 198 numbers)"
    assert repr(module.hidden) == "Linear(in_features=64, out_features=5, bias=True)"
    optimizer = leafax.optim.Adam([*adapter.parameters(), *module.parameters()], lr=0.05)
    losses = steps(leafax, module, optimizer, 4)
    assert losses[-1] < losses[0] and len(optimizer.state) == 6
    assert leafax._runtime.cut.history[-1].how == "cached"
    assert all(module.state_dict()[n].tolist() == before[n] for n in before)
    safetensors.save(tmp_path / "adapter.safetensors", adapter)
    x = leafax.from_numpy(X)
    want = module(x).tolist()
    alone, (other, adapters) = pickle.loads(pickle.dumps(module)), copy.deepcopy((module, adapter))
    assert alone(x).tolist() == want and other(x).tolist() == want
    for p in adapters.parameters():
        p.data = leafax.zeros_like(p)
    assert other(x).tolist() != want and module(x).tolist() == want
    safetensors.load(tmp_path / "adapter.safetensors", adapters)
    assert other(x).tolist() == want
    with pytest.raises(ValueError, match="`hidden.weight` has an adapter already"):
        lora.add(module, "hidden")
    with pytest.raises(ValueError, match="head.bias: no kernel among them"):
        lora.add(module, "head.bias")


# ---------------------------------------------------------------- what the document shows

DOCUMENT = (Path(__file__).parents[2] / "docs/freezing.md").read_text()
SECTIONS = ("`nn.Module`", "Flax inside of `nn`, and `nn` inside of Flax",
            "The same numbers in Flax and `nn`")  # fmt: skip


@pytest.mark.parametrize("title", SECTIONS)
def test_what_the_document_shows_runs(title: str, capsys: Any) -> None:
    section = DOCUMENT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    scope: dict[str, Any] = {}
    exec(code, scope)
    shown = capsys.readouterr().out
    if "gradients" in scope:
        assert shown == "['backbone.bias', 'backbone.kernel', 'head.weight', 'head.bias']\n"
        assert scope["gradients"]["params"]["0"]["weight"].shape == (8, 4)
        assert not scope["net"].backbone.get_parameter("kernel").requires_grad
    elif "again" in scope:
        assert "conv.weight  convolution  layers_0.kernel [3, 3, 2, 4]" in shown
        pairs = zip(*map(jax.tree.leaves, (scope["again"], scope["variables"])), strict=True)
        assert all(np.array_equal(a, b) for a, b in pairs)
    else:
        assert trained(scope["net"]) == ["hidden.weight", "hidden.bias", "head.weight", "head.bias"]
        assert shown.startswith("torch.Size([3, 8])") and "total frozen" in shown


# ---------------------------------------------------------------- checkpoints


def test_parameters_by_name_and_whole_runs(tmp_path: Path) -> None:
    def run(seed: int) -> tuple[Any, Any, Any]:
        leafax.manual_seed(seed)
        module = net()
        optimizer = leafax.optim.Adam(module.parameters(), lr=0.01)
        return module, optimizer, orbax.Run(tmp_path / "run", module=module, optimizer=optimizer)

    module, optimizer, saved = run(0)
    freeze(module, "features", stats=True)
    module.hidden.eval()
    steps(leafax, module, optimizer, 2)
    safetensors.save(tmp_path / "head.safetensors", module, only="trainable")
    assert set(safetensors.read(tmp_path / "head.safetensors")) == set(trained(module))
    saved.save(2)
    other, others, again = run(1)
    report = safetensors.load(tmp_path / "head.safetensors", other)
    assert report.loaded and other.head.weight.tolist() == module.head.weight.tolist()
    assert again.restore() == 2
    assert trained(other) == trained(module) and modes(other) == modes(module)
    assert modes(other)["hidden"] is False and modes(other)["head"] is True
    mine, theirs = (steps(leafax, m, o, 2) for m, o in ((other, others), (module, optimizer)))
    np.testing.assert_allclose(mine, theirs, rtol=1e-6)
    other.train()
    assert not other.features[1].training
    assert F.relu(other(leafax.from_numpy(X))).shape == (6, 3)
