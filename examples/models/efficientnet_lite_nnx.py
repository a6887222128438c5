"""EfficientNet-Lite0 in Flax nnx: the same parts, paths and weights as the linen module."""

import jax
import jax.numpy as jnp
from flax import nnx

from .efficientnet_lite import (
    BLOCKS,
    HEAD_FEATURES,
    STEM_FEATURES,
    BlockSpec,
    conv_for_device,
    load_pretrained,
)


class ConvNorm(nnx.Module):
    """A convolution without bias, BatchNorm (torch's momentum 0.01 is Flax's 0.99), ReLU6."""

    def __init__(
        self,
        inputs: int,
        features: int,
        kernel: int = 1,
        stride: int = 1,
        *,
        depthwise: bool = False,
        activate: bool = True,
        rngs: nnx.Rngs,
    ) -> None:
        self.conv = nnx.Conv(
            inputs,
            features,
            (kernel, kernel),
            strides=(stride, stride),
            padding="SAME",
            feature_group_count=features if depthwise else 1,
            use_bias=False,
            conv_general_dilated=conv_for_device,
            rngs=rngs,
        )
        self.bn = nnx.BatchNorm(features, momentum=0.99, epsilon=1e-3, rngs=rngs)
        self.activate = activate

    def __call__(self, x: jax.Array) -> jax.Array:
        x = self.bn(self.conv(x))
        return nnx.relu6(x) if self.activate else x


class Block(nnx.Module):
    """An inverted residual block; the input is added where the shapes agree."""

    def __init__(self, inputs: int, spec: BlockSpec, *, rngs: nnx.Rngs) -> None:
        kernel, stride, expand, features = spec
        wide = inputs * expand
        self.expand = ConvNorm(inputs, wide, rngs=rngs) if expand > 1 else None
        self.depthwise = ConvNorm(wide, wide, kernel, stride, depthwise=True, rngs=rngs)
        self.project = ConvNorm(wide, features, activate=False, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        y = x if self.expand is None else self.expand(x)
        y = self.project(self.depthwise(y))
        return x + y if x.shape == y.shape else y


class Backbone(nnx.Module):
    """Everything before the classifier: images to 1280 features, averaged over the image."""

    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.stem = ConvNorm(3, STEM_FEATURES, kernel=3, stride=2, rngs=rngs)
        inputs = STEM_FEATURES
        for i, spec in enumerate(BLOCKS):
            setattr(self, f"blocks_{i}", Block(inputs, spec, rngs=rngs))
            inputs = spec.features
        self.head = ConvNorm(inputs, HEAD_FEATURES, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = self.stem(x)
        for i in range(len(BLOCKS)):
            x = getattr(self, f"blocks_{i}")(x)
        return self.head(x).mean((1, 2))


class EfficientNetLite0(nnx.Module):
    """EfficientNet-Lite0: `backbone`, `drop` and `classifier`, each of which can be replaced.

    Args:
        num_classes: how many classes the classifier tells apart.
        dropout: the rate before the classifier in `train()` mode (published: 0.2).
        rngs: for the initial weights and for dropout.
    """

    def __init__(self, num_classes: int = 1000, dropout: float = 0.0, *, rngs: nnx.Rngs) -> None:
        self.backbone = Backbone(rngs=rngs)
        self.drop = nnx.Dropout(dropout, rngs=rngs)
        self.classifier = nnx.Linear(HEAD_FEATURES, num_classes, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Classify `float32[batch, height, width, 3]`: logits, `float32[batch, num_classes]`."""
        return self.classifier(self.drop(self.backbone(x)))


def pretrained(num_classes: int | None = None, seed: int = 0) -> EfficientNetLite0:
    """Return the network with the ImageNet weights, in `eval()` mode.

    `num_classes` and `seed` are those of `efficientnet_lite.load_pretrained`.
    """
    variables = load_pretrained(num_classes, seed)
    model = EfficientNetLite0(num_classes or 1000, rngs=nnx.Rngs(seed))
    for kind, values in (
        (nnx.Param, variables["params"]),
        (nnx.BatchStat, variables["batch_stats"]),
    ):
        state = nnx.state(model, kind)
        nnx.replace_by_pure_dict(state, jax.tree.map(jnp.asarray, values))
        nnx.update(model, state)
    model.eval()  # type: ignore[no-untyped-call]
    return model
