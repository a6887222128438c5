"""PyTorch's `torch.utils.tensorboard`: a writer of TensorBoard's files, by its package."""

from __future__ import annotations

import io
import os
import socket
import time
from typing import Any, NoReturn

import numpy as np

from .._core.handle import Handle


def _array(x: Any) -> np.ndarray:
    return x.detach().numpy() if isinstance(x, Handle) else np.asarray(x)  # type: ignore[attr-defined]


class SummaryWriter:
    """Write scalars, histograms, images and texts for TensorBoard.

    Args:
      log_dir: the folder; by default `runs/` and the date, the host and `comment`.
      max_queue: how many events wait before they are written.
      flush_secs: for how long they wait at most.
      filename_suffix: what the name of the file ends with.

    Raises:
      ImportError: the package `tensorboard` is not installed.
    """

    def __init__(
        self, log_dir: Any = None, comment: str = "", purge_step: int | None = None,
        max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = "",
    ) -> None:  # fmt: skip
        if not log_dir:
            now = time.strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = str(log_dir)
        self.purge_step = purge_step
        self._options = max_queue, flush_secs, filename_suffix
        self._writers: dict[str, Any] = {}
        self._writer(self.log_dir)

    def _writer(self, folder: str) -> Any:
        if folder not in self._writers:
            try:
                from tensorboard.summary.writer.event_file_writer import EventFileWriter
            except ImportError as error:
                raise ImportError(
                    "leafax.utils.tensorboard needs the package tensorboard: pip install "
                    "tensorboard (or use tensorboardX's SummaryWriter, which takes leafax's "
                    "tensors)"
                ) from error
            self._writers[folder] = EventFileWriter(folder, *self._options)
        return self._writers[folder]

    def _write(self, summary: Any, step: Any, walltime: Any, folder: str | None = None) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        event = Event(summary=summary, wall_time=time.time() if walltime is None else walltime)
        if step is not None:
            event.step = int(step)
        self._writer(folder or self.log_dir).add_event(event)

    def get_logdir(self) -> str:
        """Return the folder that is written to."""
        return self.log_dir

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: Any = None, walltime: float | None = None,
        new_style: bool = False, double_precision: bool = False,
    ) -> None:  # fmt: skip
        """Add a number; reading a tensor runs its program."""
        value = _array(scalar_value)
        if value.size != 1:
            raise AssertionError("scalar should be 0D")
        self._write(_summary(tag=tag, simple_value=value.item()), global_step, walltime)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: Any = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Add several numbers that are shown in one plot, each in a folder of its own."""
        for tag, value in tag_scalar_dict.items():
            folder = f"{self.log_dir}/{main_tag.replace('/', '_')}_{tag}"
            summary = _summary(tag=main_tag, simple_value=_array(value).item())
            self._write(summary, global_step, walltime, folder)

    def add_histogram(
        self, tag: str, values: Any, global_step: Any = None, bins: Any = "tensorflow",
        walltime: float | None = None, max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """Add how many values lie in each of several bins."""
        from tensorboard.compat.proto.summary_pb2 import HistogramProto

        x = _array(values).astype(np.float64).ravel()
        if not x.size:
            raise ValueError("The input has no element.")
        if bins == "tensorflow":
            positive = 1e-12 * 1.1 ** np.arange(774)
            bins = np.concatenate([-positive[::-1], [0.0], positive])
        counts, limits = np.histogram(x, bins=bins)
        if max_bins is not None and len(counts) > max_bins:
            every = -(-len(counts) // max_bins)
            counts = np.add.reduceat(counts, np.arange(0, len(counts), every))
            limits = np.append(limits[:-1:every], limits[-1])
        (full,) = np.nonzero(counts)
        first, last = (full[0], full[-1] + 1) if full.size else (0, len(counts))
        histogram = HistogramProto(
            min=x.min(), max=x.max(), num=x.size, sum=x.sum(), sum_squares=x @ x,
            bucket_limit=[limits[first], *limits[first + 1 : last + 1]],
            bucket=[0, *counts[first:last]],
        )  # fmt: skip
        self._write(_summary(tag=tag, histo=histogram), global_step, walltime)

    def add_image(
        self, tag: str, img_tensor: Any, global_step: Any = None, walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:  # fmt: skip
        """Add an image: numbers from 0 to 1, or bytes; `dataformats` names its dims."""
        image = _laid(_array(img_tensor), dataformats.upper(), "HWC")
        self._write(_summary(tag=tag, image=_encoded(image)), global_step, walltime)

    def add_images(
        self, tag: str, img_tensor: Any, global_step: Any = None, walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:  # fmt: skip
        """Add several images as the tiles of one."""
        images = _laid(_array(img_tensor), dataformats.upper(), "NHWC")
        n, h, w, c = images.shape
        columns = int(np.ceil(np.sqrt(n)))
        rows = -(-n // columns)
        grid = np.zeros((rows * columns, h, w, c), images.dtype)
        grid[:n] = images
        tiles = grid.reshape(rows, columns, h, w, c).swapaxes(1, 2)
        image = _encoded(tiles.reshape(rows * h, columns * w, c))
        self._write(_summary(tag=tag, image=image), global_step, walltime)

    def add_figure(
        self, tag: str, figure: Any, global_step: Any = None, close: bool = True,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Add a figure of matplotlib, or a list of them."""
        from matplotlib import pyplot
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        drawn = []
        for one in figure if isinstance(figure, list) else [figure]:
            canvas = FigureCanvasAgg(one)
            canvas.draw()  # type: ignore[no-untyped-call]
            pixels = canvas.buffer_rgba()  # type: ignore[no-untyped-call]
            drawn.append(np.asarray(pixels)[..., :3])
            if close:
                pyplot.close(one)
        if isinstance(figure, list):
            self.add_images(tag, np.stack(drawn), global_step, walltime, "NHWC")
        else:
            self.add_image(tag, drawn[0], global_step, walltime, "HWC")

    def add_text(
        self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Add a text, in Markdown."""
        from tensorboard.compat.proto.tensor_pb2 import TensorProto
        from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
        from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData

        shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
        text = TensorProto(dtype="DT_STRING", string_val=[text_string.encode()], tensor_shape=shape)
        metadata = _metadata("text", TextPluginData(version=0))
        summary = _summary(tag=f"{tag}/text_summary", metadata=metadata, tensor=text)
        self._write(summary, global_step, walltime)

    def add_hparams(
        self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any],
        hparam_domain_discrete: Any = None, run_name: str | None = None, global_step: Any = None,
    ) -> None:  # fmt: skip
        """Add the hyperparameters of a run and the metrics that it reached."""
        from tensorboard.plugins.hparams.api_pb2 import (
            STATUS_SUCCESS,
            Experiment,
            HParamInfo,
            MetricInfo,
            MetricName,
        )  # fmt: skip
        from tensorboard.plugins.hparams.plugin_data_pb2 import (
            HParamsPluginData,
            SessionEndInfo,
            SessionStartInfo,
        )  # fmt: skip

        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        folder = os.path.join(self.log_dir, run_name or str(time.time()))
        start = SessionStartInfo()
        for name, given in hparam_dict.items():
            _set_value(start.hparams[name], name, given)
        infos = [HParamInfo(name=name) for name in hparam_dict]
        for info in infos:
            for one in (hparam_domain_discrete or {}).get(info.name, ()):
                _set_value(info.domain_discrete.values.add(), info.name, one)
        metrics = [MetricInfo(name=MetricName(tag=tag)) for tag in metric_dict]
        parts = {
            "experiment": Experiment(hparam_infos=infos, metric_infos=metrics),
            "session_start_info": start, "session_end_info": SessionEndInfo(status=STATUS_SUCCESS),
        }  # fmt: skip
        for name, part in parts.items():
            metadata = _metadata("hparams", HParamsPluginData(version=0, **{name: part}))
            summary = _summary(tag=f"_hparams_/{name}", metadata=metadata)
            self._write(summary, global_step, None, folder)
        for tag, value in metric_dict.items():
            made = _summary(tag=tag, simple_value=_array(value).item())
            self._write(made, global_step, None, folder)

    def flush(self) -> None:
        """Write what waits."""
        for writer in self._writers.values():
            writer.flush()

    def close(self) -> None:
        """Write what waits and close the files."""
        for writer in self._writers.values():
            writer.close()
        self._writers = {}

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("add_"):
            raise NotImplementedError(
                f"leafax's SummaryWriter has no {name}; tensorboardX's writer may have it"
            )
        raise AttributeError(f"'SummaryWriter' object has no attribute '{name}'")


def _summary(**value: Any) -> Any:
    from tensorboard.compat.proto.summary_pb2 import Summary

    return Summary(value=[Summary.Value(**value)])


def _metadata(plugin: str, content: Any) -> Any:
    from tensorboard.compat.proto.summary_pb2 import SummaryMetadata

    data = SummaryMetadata.PluginData(plugin_name=plugin, content=content.SerializeToString())
    return SummaryMetadata(plugin_data=data)


def _set_value(place: Any, name: str, given: Any) -> None:
    """Set a protobuf value to a hyperparameter."""
    given = _array(given).item() if isinstance(given, (Handle, np.generic)) else given
    if given is None:
        return
    if isinstance(given, bool):
        place.bool_value = given
    elif isinstance(given, (int, float)):
        place.number_value = given
    elif isinstance(given, str):
        place.string_value = given
    else:
        raise ValueError(
            "value should be one of int, float, str, bool, or torch.Tensor, but "
            f"{name!r} is a {type(given).__name__}"
        )


def _laid(image: np.ndarray, given: str, wanted: str) -> np.ndarray:
    """Return an image with its dims in another order; grey ones get a dim of channels."""
    if sorted(given) != sorted(wanted[: len(given)] if "C" in given else wanted.replace("C", "")):
        raise AssertionError(f"dataformats {given!r} does not name the dims of an image")
    if image.ndim != len(given):
        raise AssertionError(
            f"size of input tensor and input format are different. "
            f"tensor shape: {image.shape}, input_format: {given}"
        )
    if "C" not in given:
        image, given = image[..., None], f"{given}C"
    return image.transpose([given.index(dim) for dim in wanted])


def _encoded(image: np.ndarray) -> Any:
    from PIL import Image
    from tensorboard.compat.proto.summary_pb2 import Summary

    if image.dtype != np.uint8:
        image = (np.clip(image, 0, 1) * 255).astype(np.uint8)
    image = image.repeat(3, -1) if image.shape[-1] == 1 else image
    height, width, channels = image.shape
    file = io.BytesIO()
    Image.fromarray(image).save(file, format="PNG")
    return Summary.Image(
        height=height, width=width, colorspace=channels, encoded_image_string=file.getvalue()
    )
