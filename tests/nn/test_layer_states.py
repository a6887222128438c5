"""Buffers, masks and first values of layers, and the programs that they take."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest
import torch

import leafax
from leafax import nn


def _steps(library: Any, net: Any, count: int) -> list[Any]:
    """Losses of some steps of training."""
    optimizer = library.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for x in np.random.default_rng(0).standard_normal((count, 6, 3, 4, 4)):
        loss = net(library.from_numpy(x.copy())).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


def _net(library: Any, *middle: Any) -> Any:
    part = library.nn
    parts = (part.Conv2d(3, 4, 3, bias=False), *middle, part.Flatten(), part.Linear(16, 2))
    return part.Sequential(*parts).double()


def _load(ours: Any, theirs: Any) -> None:
    state = {k: leafax.from_numpy(np.array(v.numpy())) for k, v in theirs.state_dict().items()}
    ours.load_state_dict(state)


@pytest.mark.parametrize("library", [torch, leafax], ids=["torch", "leafax"])
def test_a_property_of_a_derived_layer_comes_before_its_parameter(library: Any) -> None:
    class Doubled(library.nn.Linear):  # type: ignore[misc, name-defined]
        @property
        def weight(self) -> Any:
            return self._parameters["weight"] * 2

    layer = library.nn.Linear(3, 2)
    x = library.ones(3)
    before = layer(x) - layer.bias
    layer.__class__ = Doubled
    assert library.allclose(layer(x) - layer.bias, before * 2)


@pytest.mark.parametrize("momentum", [0.1, None])
def test_batch_norm_notes_its_batches_in_the_program_of_the_step(momentum):
    theirs = _net(torch, torch.nn.BatchNorm2d(4, momentum=momentum))
    ours = _net(leafax, nn.BatchNorm2d(4, momentum=momentum))
    _load(ours, theirs)
    expected = [float(loss) for loss in _steps(torch, theirs, 6)]
    _steps(leafax, copy.deepcopy(ours), 4)
    leafax.explain(clear=True)
    losses = _steps(leafax, ours, 6)
    runs = list(leafax.explain(clear=True))
    assert len(runs) == 6
    assert {run.how for run in runs[2:]} == {"cached"}
    np.testing.assert_allclose([float(loss) for loss in losses], expected, rtol=1e-9)
    assert int(ours[1].num_batches_tracked) == 6
    for name, value in theirs.state_dict().items():
        np.testing.assert_allclose(ours.state_dict()[name].numpy(), value.numpy(), rtol=1e-8)


def test_dropout_draws_anew_in_the_same_program():
    leafax.manual_seed(0)
    net = _net(leafax, nn.Dropout(0.5))
    _steps(leafax, net, 4)
    leafax.explain(clear=True)
    x, outputs = leafax.ones(2, 3, 4, 4, dtype=leafax.float64), []
    for _ in range(6):
        outputs.append(net(x).detach())
        leafax.synchronize()
    assert len({str(out.tolist()) for out in outputs}) == 6
    runs = list(leafax.explain(clear=True))
    assert [run.how for run in runs[3:]] == ["cached"] * 3  # the first ones may run op by op
    net.eval()
    np.testing.assert_allclose(net(x).tolist(), net(x).tolist(), rtol=1e-12)


def test_a_batch_norm_in_training_calls_what_was_put_in_place_of_its_function(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layer, x, seen = nn.BatchNorm1d(2), leafax.ones(4, 2), []
    whole = nn.functional.batch_norm

    def counting(*args: Any, **kwargs: Any) -> Any:
        seen.append("batch_norm")
        return whole(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(nn.functional, "batch_norm", counting)
        layer(x)
    layer(x)
    assert seen == ["batch_norm"]
    assert layer.num_batches_tracked.item() == 2


@pytest.mark.parametrize("library", [leafax, torch])
def test_a_function_mode_sees_a_batch_norm_count_and_compute(library: Any) -> None:
    class Names(library.overrides.TorchFunctionMode):  # type: ignore[misc, name-defined]
        def __torch_function__(self, func: Any, types: Any, args: Any, kwargs: Any = None) -> Any:
            names.append(func.__name__)
            return func(*args, **(kwargs or {}))

    names: list[str] = []
    layer, x = library.nn.BatchNorm1d(2), library.ones(4, 2)
    layer(x)
    with Names():
        layer(x)
    assert names.index("add_") < names.index("batch_norm")


@pytest.mark.parametrize("name", ["BatchNorm1d", "SyncBatchNorm", "InstanceNorm1d"])
def test_states_of_older_versions_are_read(name):
    def load(library: Any) -> Any:
        layer = getattr(library.nn, name)(3)
        state = {k: library.ones(3) for k in ("weight", "bias", "running_mean", "running_var")}
        if name == "InstanceNorm1d":
            try:
                layer.load_state_dict(state)
            except RuntimeError as error:
                return str(error)
        layer.load_state_dict(state)
        return [layer.running_mean.tolist(), int(layer.num_batches_tracked)]

    assert load(leafax) == load(torch)


def test_sync_batch_norm_is_batch_norm_in_one_process():
    def convert(library: Any) -> Any:
        part = library.nn
        net = part.Sequential(part.BatchNorm1d(3, affine=False), part.Sequential(part.Identity()))
        net[1].add_module("norm", part.BatchNorm2d(2))
        made = part.SyncBatchNorm.convert_sync_batchnorm(net)
        assert made[1].norm.weight is net[1].norm.weight
        return repr(made), list(made.state_dict())

    assert convert(leafax) == convert(torch)
    x = leafax.randn(5, 3)
    same = nn.SyncBatchNorm(3)(x), nn.BatchNorm1d(3)(x)
    assert same[0].tolist() == same[1].tolist()


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda part: part.Linear(300, 200), "weight bias"),
        (lambda part: part.Bilinear(40, 30, 40), "weight bias"),
        (lambda part: part.Conv2d(40, 60, 3, groups=2), "weight bias"),
        (lambda part: part.ConvTranspose1d(40, 60, 5), "weight bias"),
    ],
    ids=["Linear", "Bilinear", "Conv2d", "ConvTranspose1d"],
)
def test_parameters_begin_distributed_as_pytorchs(make, names):
    torch.manual_seed(0)
    leafax.manual_seed(0)
    theirs, ours = make(torch.nn), make(nn)
    for name in names.split():
        a, b = getattr(ours, name).detach().numpy(), getattr(theirs, name).detach().numpy()
        bound = np.abs(b).max()
        assert np.abs(a).max() == pytest.approx(bound, rel=0.2)
        if a.size > 1000:
            assert np.abs(a).max() == pytest.approx(bound, rel=0.01)
            assert a.std() == pytest.approx(b.std(), rel=0.02)


def test_cross_map_response_norm():
    # For an even `size` PyTorch's gradient takes other windows than its function; here it is the
    # function's.
    x = np.random.default_rng(0).standard_normal((2, 7, 2, 3))
    for size in (1, 3, 4, 5):
        made = [
            library.nn.CrossMapLRN2d(size, 0.3, 0.7, 2)(library.from_numpy(x.copy()))
            for library in (leafax, torch)
        ]
        np.testing.assert_allclose(made[0].numpy(), made[1].numpy(), rtol=1e-12)
    with pytest.raises(ValueError, match="CrossMapLRN2d: Expected input to be 4D, got 2D instead."):
        nn.CrossMapLRN2d(3)(leafax.ones(2, 2))
    leaf = leafax.from_numpy(x[:1, :, :1, :2].copy()).requires_grad_()
    assert leafax.autograd.gradcheck(nn.CrossMapLRN2d(3, 0.3, 0.7, 2), (leaf,))


@pytest.mark.parametrize(
    ("name", "args", "shape"),
    [
        ("Upsample", {"scale_factor": (2, 1.5), "mode": "bilinear"}, (1, 2, 3, 4)),
        ("UpsamplingNearest2d", {"size": 5}, (1, 2, 3, 4)),
        ("UpsamplingBilinear2d", {"scale_factor": 2}, (1, 2, 3, 4)),
        ("Fold", {"output_size": (4, 5), "kernel_size": 2}, (1, 8, 12)),
        ("Unfold", {"kernel_size": (2, 3), "padding": 1}, (1, 2, 3, 4)),
        ("PixelShuffle", {"upscale_factor": 2}, (1, 8, 2, 3)),
        ("PixelUnshuffle", {"downscale_factor": 2}, (1, 2, 4, 6)),
        ("ChannelShuffle", {"groups": 2}, (1, 4, 2, 2)),
        ("Flatten", {"start_dim": 0, "end_dim": 1}, (2, 3, 4)),
        ("Unflatten", {"dim": 1, "unflattened_size": (2, 2)}, (3, 4)),
        ("Identity", {"ignored": 1}, (2,)),
        ("CrossMapLRN2d", {"size": 3}, (1, 4, 2, 2)),
        ("Dropout", {"p": 0.0, "inplace": True}, (3,)),
        ("Dropout1d", {"p": 1.0}, (2, 3, 4)),
        ("Dropout2d", {"p": 1.0}, (2, 3, 4, 4)),
        ("Dropout3d", {"p": 0.0}, (2, 3, 4, 4, 2)),
        ("AlphaDropout", {"p": 0.0}, (3,)),
        ("FeatureAlphaDropout", {"p": 0.0}, (3, 2)),
    ],
)
def test_layers_that_the_database_has_not(name, args, shape):
    x = np.random.default_rng(0).standard_normal(shape)
    made = []
    for library in (leafax, torch):
        layer = copy.deepcopy(getattr(library.nn, name)(**args))
        out = layer(library.from_numpy(x.copy()))
        made.append((repr(layer), getattr(layer, "__constants__", None), tuple(out.shape), out))
    assert made[0][:3] == made[1][:3]
    np.testing.assert_allclose(made[0][3].numpy(), made[1][3].numpy(), rtol=1e-12)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_unpooling_puts_maxima_back(dims):
    x = np.random.default_rng(0).standard_normal((1, 2, *(5,) * dims))
    made = []
    for library in (leafax, torch):
        pool = getattr(library.nn, f"MaxPool{dims}d")(2, return_indices=True)
        unpool = getattr(library.nn, f"MaxUnpool{dims}d")(2)
        values, places = pool(library.from_numpy(x.copy()))
        made.append((repr(unpool), unpool(values, places, list(x.shape)).numpy()))
    assert made[0][0] == made[1][0]
    np.testing.assert_array_equal(made[0][1], made[1][1])


@pytest.mark.parametrize(
    "name", [*(f"LazyBatchNorm{d}d" for d in (1, 2, 3)), "LazyInstanceNorm2d", "LazyLinear"]
)
def test_lazy_layers_become_what_their_input_asks_for(name):
    rank = 2 if "Linear" in name else int(name[-2]) + 2
    x = np.random.default_rng(0).standard_normal((3, 4) + (2,) * (rank - 2)).astype("float32")
    made = []
    for library in (leafax, torch):
        args = {"affine": True, "track_running_stats": True} if "Norm" in name else {}
        args = {"out_features": 2} if "Linear" in name else args
        layer = getattr(library.nn, name)(**args)
        before = repr(layer)
        out = layer(library.from_numpy(x.copy()))
        state = {k: tuple(v.shape) for k, v in layer.state_dict().items()}
        made.append((before, repr(layer), type(layer).__name__, tuple(out.shape), state))
    assert made[0] == made[1]


_REFUSED = [
    lambda part: part.Conv2d(3, 4, 3, groups=2),
    lambda part: part.Conv2d(4, 3, 3, groups=2),
    lambda part: part.Conv2d(4, 4, 3, groups=0),
    lambda part: part.Conv2d(4, 4, 3, padding="same", stride=2),
    lambda part: part.ConvTranspose2d(4, 4, 3, padding_mode="circular"),
    lambda part: part.Dropout(1.5),
    lambda part: part.GroupNorm(2, 3),
    lambda part: part.Unflatten(1, (2.0, 1)),
    lambda part: part.Unflatten(1, 2),
    lambda part: part.Bilinear(0, 1, 2),
    lambda part: part.FractionalMaxPool2d(2),
    lambda part: part.FractionalMaxPool2d(2, output_size=2, output_ratio=0.5),
    lambda part: part.FractionalMaxPool3d(2, output_ratio=1.5),
    lambda part: part.FractionalMaxPool3d((2, 0, 1), output_ratio=0.5),
]


@pytest.mark.parametrize("make", _REFUSED, ids=range(len(_REFUSED)))
def test_constructors_refuse_what_pytorchs_refuse(make):
    said = []
    for part in (nn, torch.nn):
        with warnings.catch_warnings(), pytest.raises(Exception) as raised:  # noqa: B017, PT011
            warnings.simplefilter("ignore")
            make(part)
        said.append((type(raised.value), str(raised.value)))
    assert said[0] == said[1]


def test_transposed_convolutions_take_the_size_of_the_output():
    def sizes(library: Any, size: Any) -> Any:
        layer = library.nn.ConvTranspose2d(1, 1, 3, stride=2)
        try:
            return tuple(layer(library.zeros(1, 1, 3, 4), output_size=size).shape)
        except ValueError as error:
            return str(error)

    for size in ([8, 9], [1, 1, 7, 10], [9, 9], [8]):
        assert sizes(leafax, size) == sizes(torch, size)
