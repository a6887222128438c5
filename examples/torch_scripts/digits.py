"""The 1,797 handwritten digits of scikit-learn, 8x8 pixels each."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def load_digits(size: int = 8) -> tuple[Array, Array]:
    """Return the digits in an order of chance that is always the same.

    Args:
        size: height and width, a multiple of 8; pixels are repeated.

    Returns:
        Images, `float32[1797, 1, size, size]` in [0, 1], and labels, `int64[1797]`.
    """
    from sklearn import datasets  # type: ignore[import-untyped, unused-ignore]

    pixels, labels = datasets.load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    images = (pixels[order] / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    images = images.repeat(size // 8, axis=2).repeat(size // 8, axis=3)
    return images, labels[order].astype(np.int64)
