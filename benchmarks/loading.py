"""Samples a second by leafax's `DataLoader` and by PyTorch's, in turns, in one run.

    python benchmarks/loading.py                # 10,000 samples, 0, 1 and 2 workers
    python benchmarks/loading.py --samples 2000 --turns 3

The dataset is in memory: images of 28 x 28 bytes, padded, cropped by chance and normalised by
NumPy. A second one is a `TensorDataset` of the same images. Printed are the medians of the turns,
and the median of their ratios: above 1 leafax loads more.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np
import torch

import leafax


class Images:
    """Images that are changed by chance; a dataset of both libraries."""

    def __init__(self, images: np.ndarray, labels: np.ndarray) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        padded = np.pad(self.images[index], 2)
        top, left = np.random.randint(0, 5, 2)
        image = padded[top : top + 28, left : left + 28].astype(np.float32)
        return (image / 255 - 0.1307) / 0.3081, int(self.labels[index])


def seconds(loader: Any) -> float:
    """Return the seconds that one turn over a loader takes; NumPy looks at the batches."""
    start = time.perf_counter()
    count = 0
    for images, labels in loader:
        count += len(labels)
        assert images.shape[1:] == (28, 28)
    taken = time.perf_counter() - start
    assert count == len(loader.dataset)
    return taken


def compare(name: str, datasets: dict[Any, Any], workers: int, batch: int, turns: int) -> None:
    """Print the rates of both libraries and their ratio."""
    loaders = {
        library: library.utils.data.DataLoader(
            dataset, batch_size=batch, shuffle=True, num_workers=workers,
            persistent_workers=workers > 0,
        )
        for library, dataset in datasets.items()
    }  # fmt: skip
    for loader in loaders.values():
        seconds(loader)
    times: dict[Any, list[float]] = {library: [] for library in loaders}
    for turn in range(turns):
        for library in list(loaders)[:: 1 if turn % 2 else -1]:
            times[library].append(seconds(loaders[library]))
    size = len(datasets[leafax])
    ours, theirs = (size / statistics.median(times[library]) for library in (leafax, torch))
    ratios = [b / a for a, b in zip(times[leafax], times[torch], strict=True)]
    ratio = statistics.median(ratios)
    print(f"{name:14} {workers} workers  {ours:10,.0f} {theirs:10,.0f}  {ratio:6.2f}", flush=True)


def main() -> None:
    """Compare both libraries over each dataset and number of workers."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--workers", type=int, nargs="*", default=[0, 1, 2])
    given = parser.parse_args()
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (given.samples, 28, 28), dtype=np.uint8)
    labels = random.integers(0, 10, given.samples)
    transformed = Images(images, labels)
    print("samples a second            leafax    PyTorch   ratio")
    for workers in given.workers:
        compare("transformed", {lib: transformed for lib in (leafax, torch)}, workers,
                given.batch, given.turns)  # fmt: skip
    for workers in given.workers:
        rows = {
            lib: lib.utils.data.TensorDataset(
                lib.tensor(images.astype(np.float32)), lib.tensor(labels)
            )
            for lib in (leafax, torch)
        }
        compare("TensorDataset", rows, workers, given.batch, given.turns)


if __name__ == "__main__":
    main()
