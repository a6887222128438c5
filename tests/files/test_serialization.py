"""Files of `save`, read by PyTorch, and PyTorch's files, read by `load`."""

from __future__ import annotations

import copy
import io
import os
import pickle
import struct
import tarfile
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.sameness import same

import leafax
from leafax import serialization

_DTYPES = (
    "float32 float64 float16 bfloat16 complex64 complex128 uint8 int8 int16 int32 int64 bool"
).split()
_FORMATS = pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
_WAYS = pytest.mark.parametrize(
    ("source", "target"), [(torch, leafax), (leafax, torch)], ids=["torch's", "leafax's"]
)


def _through(source: Any, target: Any, x: Any, zipped: bool = True, **kwargs: Any) -> Any:
    file = io.BytesIO()
    source.save(x, file, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    return target.load(file, **kwargs)


def _facts(lib: Any, x: Any) -> Any:
    """All that can be compared of an object of either library."""
    if isinstance(x, lib.Tensor):
        place = str(x.dtype), tuple(x.shape), tuple(x.stride()), x.storage_offset()
        values = x.detach().resolve_conj().to(lib.complex128).numpy().tolist()
        kind = "Parameter" if isinstance(x, lib.nn.Parameter) else type(x).__name__
        bits = x.is_conj(), x.requires_grad, x.untyped_storage().nbytes()
        return kind, place, values, bits
    if isinstance(x, dict):
        more = vars(x) if isinstance(x, OrderedDict) else {}
        return type(x).__name__, {k: _facts(lib, v) for k, v in x.items()}, more
    if isinstance(x, (list, tuple)):
        return type(x).__name__, [_facts(lib, y) for y in x]
    return str(x)


def _everything(lib: Any) -> Any:
    x = lib.arange(12.0).reshape(3, 4)
    named = OrderedDict(w=x, b=x[1:, ::2])
    named._metadata = OrderedDict({"": {"version": 1}})  # type: ignore[attr-defined]
    return {
        "dtypes": [lib.tensor([0, 1, 1]).to(getattr(lib, name)) for name in _DTYPES],
        "named": named, "turned": x.t(), "all": (x[0].expand(2, 4), x[:0], lib.tensor(3)),
        "images": lib.arange(16.0).view(1, 2, 2, 4).contiguous(memory_format=lib.channels_last),
        "conj": lib.tensor([1 + 2j]).conj(), "leaf": lib.ones(2, requires_grad=True),
        "parameter": lib.nn.Parameter(lib.ones(2, 2)),
        "frozen": lib.nn.Parameter(lib.ones(2), requires_grad=False),
        "plain": [1, -1, 2**70, 0.5, True, None, "ü", b"bytes", 1 + 2j, {3}, (), {"a": [1]}],
        "others": [lib.float32, lib.Size([2, 3]), lib.device("cpu"), lib.device("cuda", 1)],
    }  # fmt: skip


@_FORMATS
@_WAYS
def test_files_go_both_ways(source: Any, target: Any, zipped: bool) -> None:
    made = _everything(source)
    read = _through(source, target, made, zipped)
    assert _facts(target, read) == _facts(source, made)
    read["named"]["w"].detach()[1, 0] = 99  # what shared memory shares it
    assert read["turned"][0, 1] == 99 and read["named"]["b"][0, 0] == 99


@_WAYS
def test_unsigned_integers_have_untyped_memory(source: Any, target: Any) -> None:
    x = source.arange(5).to(source.uint16)
    read = _through(source, target, [x, x[2:]])
    assert _facts(target, read) == _facts(source, [x, x[2:]])


@_FORMATS
@pytest.mark.parametrize("weights_only", [True, False])
def test_leafax_reads_its_own_files(zipped: bool, weights_only: bool) -> None:
    made = _everything(leafax)
    read = _through(leafax, leafax, made, zipped, weights_only=weights_only)
    assert _facts(leafax, read) == _facts(leafax, made)


def test_what_is_saved_is_left_as_it_is() -> None:
    w = leafax.ones(3)
    leafax.save({"w": w}, io.BytesIO())
    assert not w._shares


def test_pytorch_maps_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    leafax.save([leafax.arange(5), leafax.ones(3, 3)], path)
    a, b = torch.load(path, mmap=True)
    assert a.tolist() == [0, 1, 2, 3, 4] and b.sum() == 9
    assert a.data_ptr() % 64 == b.data_ptr() % 64 == 0
    assert zipfile.ZipFile(path).namelist()[0] == "model/data.pkl"
    assert leafax.load(path, mmap=True)[0].tolist() == [0, 1, 2, 3, 4]


def _losses(lib: Any, optimizer: Any, w: Any, steps: int) -> list[float]:
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = ((w - 3) ** 2).sum()
        loss.backward()
        optimizer.step()
        found.append(float(loss.detach()))
    return found


@pytest.mark.parametrize("name", ["SGD", "Adam"])
@_WAYS
def test_optimizers_go_on_in_the_other_library(name: str, source: Any, target: Any) -> None:
    def made(lib: Any) -> tuple[Any, Any]:
        w = lib.nn.Parameter(lib.arange(4, dtype=lib.float64))
        options = {"momentum": 0.9} if name == "SGD" else {"amsgrad": True}
        return w, getattr(lib.optim, name)([w], lr=0.1, **options)

    w, optimizer = made(source)
    _losses(source, optimizer, w, 3)
    state = _through(source, target, {"w": w.detach(), "optimizer": optimizer.state_dict()})
    there, other = made(target)
    other.load_state_dict(state["optimizer"])
    with target.no_grad():
        there.copy_(state["w"])
    expected = _losses(source, optimizer, w, 3)
    np.testing.assert_allclose(_losses(target, other, there, 3), expected, rtol=1e-12)


class _Call:
    def __init__(self, function: Any, *args: Any) -> None:
        self.call = function, args

    def __reduce__(self) -> Any:
        return self.call


class Trusted:
    """A class that users may trust in files."""

    def __init__(self) -> None:
        self.x = 1


def _refusal(lib: Any, data: bytes, **kwargs: Any) -> str:
    with pytest.raises(pickle.UnpicklingError) as error:
        lib.load(io.BytesIO(data), **kwargs)
    return str(error.value).replace("leafax.", "torch.")


def _zip_of(pickled: bytes) -> bytes:
    """An archive of PyTorch's with this pickle in it."""
    file, out = io.BytesIO(), io.BytesIO()
    torch.save(None, file)
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, pickled if name.endswith("data.pkl") else old.read(name))
    return out.getvalue()


_HOSTILE: dict[str, Any] = {
    "system": pickle.dumps({"w": _Call(os.system, "touch pwned")}, 2),
    "eval": pickle.dumps(_Call(eval, "open('pwned', 'w')"), 2),
    "getattr": pickle.dumps([_Call(getattr, "", "join")], 2),
    "a class": pickle.dumps(Trusted(), 2),
    "numpy": pickle.dumps(np.arange(3), 2),
    "another protocol": pickle.dumps({"w": 1}, 2)[:2] + b"\x95" + b".",
    "append to a dict": b"\x80\x02}K\x01a.",
    "extend a tuple": b"\x80\x02)(K\x01e.",
    "set an item of a list": b"\x80\x02]K\x01K\x01s.",
    "set items of a set": b"\x80\x02\x8f(K\x01K\x01u.",
    "call a number": b"\x80\x02K\x01)R.",
    "new of a number": b"\x80\x02K\x01)\x81.",
    "state of a list": b"\x80\x02]K\x01b.",
    "a persistent string": b"\x80\x02X\x01\x00\x00\x00aQ.",
    "a persistent module": b"\x80\x02X\x06\x00\x00\x00module\x85Q.",
}


@pytest.mark.parametrize("what", _HOSTILE)
def test_files_that_are_not_trusted_are_refused_in_pytorchs_words(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = _zip_of(_HOSTILE[what])
    assert _refusal(leafax, data) == _refusal(torch, data)
    assert not (tmp_path / "pwned").exists()


def test_code_is_refused_in_the_legacy_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    parts = [0x1950A86A20F9469CFC6C, 1001, {}, _Call(os.system, "touch pwned")]
    data = b"".join(pickle.dumps(part, 2) for part in parts)
    assert _refusal(leafax, data) == _refusal(torch, data)
    assert not (tmp_path / "pwned").exists()


def test_what_users_trust_is_loaded() -> None:
    data = _zip_of(pickle.dumps(Trusted(), 2))
    name = f"{Trusted.__module__}.Trusted"
    assert serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data)) == [name]
    with serialization.safe_globals([Trusted]):
        assert serialization.get_safe_globals() == [Trusted]
        assert leafax.load(io.BytesIO(data)).x == 1
        assert serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data)) == []
    assert serialization.get_safe_globals() == []
    serialization.add_safe_globals([(Trusted, name)])
    assert type(leafax.load(io.BytesIO(data))) is Trusted
    serialization.clear_safe_globals()
    assert "was not an allowed global" in _refusal(leafax, data)
    for wrong, kind in (((Trusted,), ValueError), ((Trusted, 1), TypeError)):
        with serialization.safe_globals([wrong]), pytest.raises(kind, match="Expected"):
            leafax.load(io.BytesIO(data))


def test_code_runs_where_the_file_is_trusted() -> None:
    data = _zip_of(pickle.dumps([Trusted(), _Call(len, "abc"), np.arange(2)], 2))
    first, number, array = leafax.load(io.BytesIO(data), weights_only=False)
    assert type(first) is Trusted and number == 3 and array.tolist() == [0, 1]


@_WAYS
def test_whole_modules(source: Any, target: Any) -> None:
    net = source.nn.Sequential(source.nn.Linear(3, 2), source.nn.ReLU()).eval()
    read = _through(source, target, net, weights_only=False)
    assert type(read).__module__.startswith(target.__name__) and not read.training
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    expected = net(source.tensor(x)).detach().numpy()
    np.testing.assert_allclose(read(target.tensor(x)).detach().numpy(), expected, rtol=1e-5)
    assert "Weights only load failed" in str(
        pytest.raises(pickle.UnpicklingError, _through, source, target, net).value
    )


_PLACES: dict[str, Any] = {
    "text": lambda lib: "cpu", "device": lambda lib: lib.device("cpu"),
    "dict": lambda lib: {"cuda:1": "cpu"}, "function": lambda lib: lambda storage, place: storage,
    "none": lambda lib: lambda storage, place: None if place == "cpu" else storage,
    "nowhere": lambda lib: "nowhere", "no gpu": lambda lib: None,
}  # fmt: skip


@pytest.mark.parametrize("how", _PLACES)
def test_map_location(how: str) -> None:
    """Of a file whose tensors were on a GPU that is not here."""
    file = io.BytesIO()
    torch.save([torch.arange(3), torch.ones(2)], file)
    data = file.getvalue().replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:1")
    with zipfile.ZipFile(io.BytesIO(file.getvalue())) as archive:
        pickled = archive.read("archive/data.pkl")
    changed = pickled.replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:1")
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(file.getvalue())) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, changed if name.endswith("data.pkl") else old.read(name))
    data = out.getvalue()

    def program(lib: Any, see: Any) -> None:
        with see.catch():
            see(lib.load(io.BytesIO(data), map_location=_PLACES[how](lib)))

    same(program)


_LACKING: dict[str, Any] = {
    "sparse": lambda: torch.eye(2).to_sparse(),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
}


@pytest.mark.filterwarnings("ignore:.*quantize")
@pytest.mark.parametrize("kind", _LACKING)
def test_tensors_that_leafax_lacks(kind: str) -> None:
    with pytest.raises(NotImplementedError, match=f"{kind} tensor|sparse_coo"):
        _through(torch, leafax, _LACKING[kind]())


def test_floats_of_8_bits_go_both_ways() -> None:
    file = io.BytesIO()
    torch.save({"x": torch.tensor([1.0, 2.5]).to(torch.float8_e4m3fn)}, file)
    file.seek(0)
    read, again = leafax.load(file)["x"], io.BytesIO()
    assert read.dtype is leafax.float8_e4m3fn and read.float().tolist() == [1, 2.5]
    leafax.save(read, again)
    again.seek(0)
    assert torch.equal(torch.load(again).float(), torch.tensor([1.0, 2.5]))
    file.seek(0)
    found = serialization.read_arrays(file)["x"]
    assert found.dtype.name == "float8_e4m3fn" and found.astype(float).tolist() == [1, 2.5]


def test_refusals_by_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    legacy = tmp_path / "legacy.pt"
    torch.save(torch.ones(2), legacy, _use_new_zipfile_serialization=False)
    other = tmp_path / "other"
    other.write_bytes(pickle.dumps(3, 2))
    cut = tmp_path / "cut.pt"
    torch.save(torch.ones(100), cut)
    cut.write_bytes(cut.read_bytes()[:-300])
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        tar.add(other, "pickle")

    def program(lib: Any, see: Any) -> None:
        see.attempt(lib.load, str(legacy), mmap=True)
        see.attempt(lib.load, io.BytesIO(legacy.read_bytes()), mmap=True)
        see.attempt(lib.load, other)
        see.attempt(lib.load, legacy, pickle_module=pickle, weights_only=True)
        see.attempt(lib.load, tmp_path / "x.tar")
        see.attempt(lib.serialization.get_unsafe_globals_in_checkpoint, legacy)
        see.attempt(lib.serialization.set_default_load_endianness, "big")
        see.attempt(lib.serialization.set_default_mmap_options, 77)
        x = lib.ones(2)
        see.attempt(lib.save, [x, x.view(lib.int32)], io.BytesIO())
        monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
        see.attempt(lib.load, legacy, weights_only=False, pickle_module=pickle)
        monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
        see.attempt(lib.load, legacy)
        monkeypatch.undo()

    same(program)
    with pytest.raises(RuntimeError, match="failed finding central directory"):
        leafax.load(cut)


def test_memory_that_a_file_promises_must_be_there() -> None:
    file = io.BytesIO()
    torch.save(torch.ones(4), file, _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match=r"unexpected EOF, expected 6 more bytes\. The file mig"):
        leafax.load(io.BytesIO(file.getvalue()[:-6]))
    wrong = file.getvalue()[:-24] + struct.pack("<q", 3) + bytes(16)

    def program(lib: Any, see: Any) -> None:
        see.attempt(lib.load, io.BytesIO(wrong))

    same(program)


def test_big_endian_files() -> None:
    file, out = io.BytesIO(), io.BytesIO()
    torch.save(torch.arange(3, dtype=torch.int32), file)
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("data/0"):
                data = np.frombuffer(data, "<i4").astype(">i4").tobytes()
            new.writestr(name, b"big" if name.endswith("byteorder") else data)
    out.seek(0)
    assert leafax.load(out).tolist() == [0, 1, 2]


def test_plain_pickles_and_copies_go_on_working() -> None:
    w = leafax.ones(2, requires_grad=True)
    for read in (pickle.loads(pickle.dumps(w)), copy.deepcopy(w)):
        assert read.requires_grad and read.tolist() == [1, 1]
    from leafax._tensor.copying import _rebuild

    assert _rebuild(np.ones(2), True).requires_grad


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_plain_pickles_of_pytorch_are_tensors_here() -> None:
    data = _zip_of(pickle.dumps({"x": torch.arange(2).storage()}, 2))
    assert leafax.load(io.BytesIO(data), weights_only=False)["x"].tolist() == [0, 1]
