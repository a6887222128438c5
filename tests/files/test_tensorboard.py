"""TensorBoard's files, read back by its own package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leafax

pytest.importorskip("tensorboard")


def _read(folder: Path) -> Any:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder))
    found.Reload()
    return found


def test_what_is_written_is_read_by_tensorboard(tmp_path: Path) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    w = leafax.tensor([1.0, 2.0, -3.0], requires_grad=True)
    with leafax.utils.tensorboard.SummaryWriter(tmp_path) as writer:
        for step in range(2):
            writer.add_scalar("loss", (w * w).sum() * step, step)
        writer.add_scalars("both", {"a": leafax.tensor(1), "b": 2.0}, 3)
        writer.add_histogram("w", w, 1)
        writer.add_histogram("few", np.arange(10), 1, bins=10, max_bins=4)
        writer.add_image("image", leafax.ones(3, 4, 5))
        writer.add_images("images", leafax.zeros(3, 1, 2, 2))
        writer.add_figure("figure", pyplot.figure(figsize=(1, 1)))
        writer.add_text("text", "**hello**", 2)
        writer.add_hparams({"lr": 0.1, "name": "x"}, {"accuracy": leafax.tensor(0.5)}, run_name="r")
        writer.flush()
        with pytest.raises(NotImplementedError, match="has no add_audio; tensorboardX's writer"):
            writer.add_audio("sound", w)
        with pytest.raises(AssertionError, match="scalar should be 0D"):
            writer.add_scalar("loss", w)
    found = _read(tmp_path)
    assert [(e.step, e.value) for e in found.Scalars("loss")] == [(0, 0), (1, 14)]
    (histogram,) = (e.histogram_value for e in found.Histograms("w"))
    assert (histogram.num, histogram.sum, histogram.min, histogram.max) == (3, 0, -3, 2)
    assert sum(histogram.bucket) == 3
    assert sum(found.Histograms("few")[0].histogram_value.bucket) == 10
    assert [(e.width, e.height) for e in found.Images("image")] == [(5, 4)]
    assert [(e.width, e.height) for e in found.Images("images")] == [(4, 4)]
    assert found.Images("figure")[0].width == 100
    assert b"**hello**" in found.Tensors("text/text_summary")[0].tensor_proto.string_val
    assert _read(tmp_path / "both_a").Scalars("both")[0].value == 1
    assert _read(tmp_path / "r").Scalars("accuracy")[0].value == 0.5


def test_tensorboardx_takes_tensors(tmp_path: Path) -> None:
    board = pytest.importorskip("tensorboardX")
    loss = (leafax.ones(3, requires_grad=True) * 2).sum()
    with board.SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("loss", loss, 1)
        writer.add_histogram("w", leafax.arange(5.0), 1)
    assert _read(tmp_path).Scalars("loss")[0].value == 6
