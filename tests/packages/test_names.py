"""Names of PyTorch's infrastructure that packages import: what has nothing behind it says so."""

from __future__ import annotations

import gc
import importlib
import operator
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import leafax
from leafax import nn


def module(name: str) -> Any:
    return importlib.import_module(f"leafax.{name}")


REFUSED = [
    ("jit.trace", "a step is compiled as it is, and `leafax.functional.lower` exports what was "
     "recorded"),
    ("jit.load", "there is nothing that runs TorchScript; `leafax.load` reads state dicts"),
    ("onnx.export", "`leafax.functional.lower` exports what was recorded as a JAX function"),
    ("export.export", "`leafax.functional.lower` gives what was recorded as a JAX function, for "
     "`jax.export`"),
    ("nested.nested_tensor", "there are no nested tensors: `nn.utils.rnn.pad_sequence` and a mask "
     "do it"),
    ("ao.quantization.quantize_dynamic", "there are no quantized tensors"),
    ("distributed.tensor.parallel.loss_parallel", "XLA splits the loss over the devices by itself: "
     "leave the block out"),
    ("utils.cpp_extension.load", "compiled extensions for PyTorch need PyTorch's own libraries; "
     "`leafax.call_jax` makes an op of any JAX function"),
    ("cuda.make_graphed_callables", "a training step is one program already; leave the graph out"),
    ("xpu.Stream", "leafax runs on no Intel GPU"),
    ("_subclasses.fake_tensor.FakeTensor", "`leafax.eval_shape` tells the shapes of a function's "
     "results"),
]  # fmt: skip


@pytest.mark.parametrize("name, why", REFUSED)
def test_what_has_nothing_behind_it_says_so(name: str, why: str) -> None:
    path, _, short = name.rpartition(".")
    found = getattr(module(path), short)
    assert not isinstance(leafax.ones(1), found) if isinstance(found, type) else callable(found)
    with pytest.raises(NotImplementedError) as caught:
        found("any", thing=1)
    assert str(caught.value) == f"leafax has no torch.{name}: {why}"


IDENTITIES = """
jit.script jit.script_method jit.export jit.unused jit.ignore jit.interface jit._overload
jit._overload_method jit._script_if_tracing compiler.disable compiler.allow_in_graph
compiler.assume_constant_result _dynamo.allow_in_graph _dynamo.disable
distributed.elastic.multiprocessing.errors.record
""".split()


@pytest.mark.parametrize("name", IDENTITIES)
def test_marks_of_functions_return_them(name: str) -> None:
    path, _, short = name.rpartition(".")
    mark = getattr(module(path), short)

    def f() -> None:
        pass

    assert mark(f) is f


def test_marks_with_options_are_decorators() -> None:
    def f() -> None:
        pass

    assert leafax.jit.ignore(drop=True)(f) is f
    assert leafax.compiler.disable(recursive=False)(f) is f
    assert module("onnx.symbolic_helper").parse_args("v", "i")(f) is f
    assert leafax._dynamo.optimize("inductor")(f) is f


FALSE = """
jit.is_scripting jit.is_tracing compiler.is_compiling compiler.is_dynamo_compiling
compiler.is_exporting _dynamo.is_compiling distributed.is_available distributed.is_initialized
distributed.is_nccl_available distributed.is_torchelastic_launched onnx.is_in_onnx_export
xpu.is_available mps.is_available mtia.is_available cuda.is_current_stream_capturing
utils._triton.has_triton _C._are_functorch_transforms_active
""".split()


@pytest.mark.parametrize("name", FALSE)
def test_questions_are_answered_by_false(name: str) -> None:
    path, _, short = name.rpartition(".")
    assert getattr(module(path), short)() is False


@pytest.mark.parametrize(
    "types",
    ["int", "list[int]", "dict[str, list[float]]", "int | None", "tuple[int, str]", "(int, str)"],
)
@pytest.mark.parametrize("value", [1, "a", None, [1], [1, "a"], {"a": [1.0]}, {"a": [1]}, (1, "a")])
def test_jits_isinstance_reads_annotations(types: str, value: Any) -> None:
    kinds = eval(types)
    assert leafax.jit.isinstance(value, kinds) == torch.jit.isinstance(value, kinds)


def test_transforms_are_seen_by_who_asks() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append(leafax._C._are_functorch_transforms_active())
        return x.sin()

    leafax.func.vmap(f)(leafax.ones(3))
    assert seen[0]


def test_checkpoint_wrappers_keep_names_and_gradients() -> None:
    found = module("distributed.algorithms._checkpoint.checkpoint_wrapper")
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1))
    before, x = dict(model.state_dict()), leafax.ones(1, 2)
    model(x).sum().backward()
    gradients = [p.grad.tolist() for p in model.parameters()]
    found.apply_activation_checkpointing(model, check_fn=lambda m: isinstance(m, nn.Linear))
    assert isinstance(model[0], found.CheckpointWrapper) and model[0].in_features == 2
    assert list(model.state_dict()) == list(before)
    assert [n for n, _ in model[0].named_parameters()] == ["weight", "bias"]
    model.load_state_dict(before)
    model.zero_grad()
    model(x).sum().backward()
    assert [p.grad.tolist() for p in model.parameters()] == gradients


def test_hub_reads_what_was_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    hub, url = leafax.hub, "https://example.org/models/net-0123abcd.pth"
    assert hub.get_dir() == str(tmp_path / "hub")
    (tmp_path / "hub" / "checkpoints").mkdir(parents=True)
    torch.save({"weight": torch.arange(3.0)}, tmp_path / "hub/checkpoints/net-0123abcd.pth")
    assert hub.load_state_dict_from_url(url)["weight"].tolist() == [0, 1, 2]
    assert leafax.utils.model_zoo.load_url(url, weights_only=True)["weight"].tolist() == [0, 1, 2]
    (tmp_path / "source.pth").write_bytes(b"numbers")
    address = (tmp_path / "source.pth").as_uri()
    with pytest.raises(RuntimeError, match='invalid hash value .expected "00", got "'):
        hub.download_url_to_file(address, str(tmp_path / "a.pth"), "00", progress=False)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["hub", "source.pth"]
    hub.download_url_to_file(address, str(tmp_path / "a.pth"), progress=False)
    assert (tmp_path / "a.pth").read_bytes() == b"numbers"
    (tmp_path / "hubconf.py").write_text(
        "dependencies = ['numpy']\ndef double(x):\n    'Doubles.'\n    return 2 * x\n"
    )
    assert hub.list(tmp_path) == ["double"] and hub.help(tmp_path, "double") == "Doubles."
    assert hub.load(tmp_path, "double", 4, source="local") == 8
    with pytest.raises(NotImplementedError, match="it would run code from the network"):
        hub.load("pytorch/vision", "resnet18")


def test_futures_and_fork() -> None:
    future: Any = leafax.futures.Future()
    doubled = future.then(lambda f: 2 * f.wait())
    failed = future.then(lambda f: 1 / 0)
    threading.Timer(0.01, future.set_result, [4]).start()
    assert leafax.futures.wait_all([future, doubled]) == [4, 8] and failed.done()
    with pytest.raises(ZeroDivisionError):
        failed.wait()
    with pytest.raises(RuntimeError, match="can only be marked completed once"):
        future.set_result(5)
    assert leafax.jit.wait(leafax.jit.fork(operator.add, 1, 2)) == 3


def test_processes_say_what_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    multiprocessing = leafax.multiprocessing
    with pytest.raises(multiprocessing.ProcessRaisedException) as caught:
        multiprocessing.spawn(operator.truediv, (0,), nprocs=1)
    assert str(caught.value).endswith("ZeroDivisionError: division by zero\n")
    assert str(caught.value).startswith("\n\n-- Process 0 terminated with the following error:\n")
    del caught  # its traceback holds the processes, and so the folder of their errors
    gc.collect()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("dimension", [1, 7])
def test_sobol_points_are_pytorchs(dimension: int) -> None:
    ours = leafax.quasirandom.SobolEngine(dimension)
    theirs = torch.quasirandom.SobolEngine(dimension)
    calls: list[Callable[[Any], Any]] = [
        lambda e: e.draw(3), lambda e: e.fast_forward(4).draw(2), lambda e: e.draw(),
        lambda e: e.reset().draw_base2(3),
    ]  # fmt: skip
    for call in calls:
        assert np.array_equal(call(ours).numpy(), call(theirs).numpy())
    for engine in (ours, theirs):
        with pytest.raises(ValueError, match=r"then: n=8\+2\*\*2=12\. If you still"):
            engine.draw_base2(2)
    scrambled = leafax.quasirandom.SobolEngine(dimension, scramble=True, seed=3)
    first = scrambled.draw(8).numpy()
    assert np.array_equal(scrambled.reset().draw(8).numpy(), first) and (first > 0).all()
    assert repr(scrambled) == f"SobolEngine(dimension={dimension}, scramble=True, seed=3)"


EIGHTS = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]
NUMBERS = [0.0, -0.0, 1.0, -2.3, 240.0, 448.0, 464.1, 1e6, 3e-3, 1e-9, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("source", ["float32", "float64", "bfloat16", "float16", "int32"])
@pytest.mark.parametrize("name", EIGHTS)
def test_floats_of_8_bits_are_rounded_as_pytorch_does(name: str, source: str) -> None:
    given = NUMBERS if source != "int32" else [0, 1, -3, 500, 1000]

    def cast(lib: Any) -> Any:
        x = lib.tensor(given, dtype=getattr(lib, source)).to(getattr(lib, name))
        return x.float().numpy(), x.element_size(), repr(x.dtype)

    (ours, *facts), (theirs, *expected) = cast(leafax), cast(torch)
    np.testing.assert_array_equal(ours, theirs)
    assert facts == expected


def test_dtypes_that_no_tensor_has_are_told_apart() -> None:
    names = "qint8 quint8 qint32 quint4x2 quint2x4 complex32 chalf float4_e2m1fn_x2".split()
    for name in names:
        ours, theirs = getattr(leafax, name), getattr(torch, name)
        assert isinstance(ours, leafax.dtype) and repr(ours) == repr(theirs)
        assert (ours.itemsize, ours.is_complex) == (theirs.itemsize, theirs.is_complex)
        assert ours.is_floating_point == theirs.is_floating_point
    assert len({getattr(leafax, name) for name in [*names, "int8"]}) == len(names)  # chalf is one
    with pytest.raises(NotImplementedError) as caught:
        leafax.zeros(2, dtype=leafax.qint8)
    assert (
        str(caught.value) == "leafax has no tensors of torch.qint8: there are no quantized tensors"
    )


def test_an_assertion_of_a_tensor_cuts_nothing() -> None:
    leafax.synchronize()
    before = len(leafax.explain())
    leafax._assert_async(leafax.ones(()) * 2)
    leafax._assert_async(leafax.ones(()) * 0, "must be {positive}")
    assert len(leafax.explain()) == before
    with pytest.raises(RuntimeError, match="^must be {positive}"):
        leafax.ones(2).tolist()
    with pytest.raises(RuntimeError, match="with more than one value is ambiguous"):
        leafax._assert_async(leafax.ones(2))


def test_streams_and_events() -> None:
    begin, end = leafax.Event(enable_timing=True), leafax.Event(enable_timing=True)
    with leafax.Stream() as stream:
        begin.record(stream)
        stream.record_event(end)
    assert repr(stream) == repr(torch.Stream()) and begin.elapsed_time(end) >= 0
    with pytest.raises(ValueError, match="created with argument 'enable_timing=True'"):
        leafax.Event().elapsed_time(end)
    if not leafax.cuda.is_available():
        for lib in (leafax, torch):
            with pytest.raises(RuntimeError, match="torch.cuda.Stream requires CUDA support"):
                lib.cuda.Stream()
            with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
                lib.cuda.current_stream()
            for kind in (lib.Stream, lib.Event):
                with pytest.raises(RuntimeError, match="Cannot access accelerator device"):
                    kind(device=0)
            assert lib.cuda.memory_allocated(0) == lib.cuda.max_memory_reserved(0) == 0
            with pytest.raises(TypeError, match="type torch.cuda.FloatTensor not available"):
                lib.cuda.FloatTensor(2)
        assert leafax.cuda.get_rng_state_all() == [] and leafax.cuda.memory_stats() == {}


def test_tensors_are_grouped_for_optimizers_of_packages() -> None:
    def groups(lib: Any, home: Any) -> Any:
        a, b, c = lib.ones(1), lib.ones(1, dtype=lib.float64), lib.zeros(1)
        found = home._group_tensors_by_device_and_dtype([[a, b, c], [c, b, a], []], True)
        return {
            str(key): ([[t.tolist() for t in each] for each in lists], places)
            for key, (lists, places) in found.items()
        }

    home = importlib.import_module("torch.utils._foreach_utils")
    theirs = groups(torch, home)
    assert groups(leafax, module("utils._foreach_utils")) == theirs


def test_who_overrides_einsum_sees_its_operands_one_by_one() -> None:
    class Seen:
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return args

    x = Seen()
    for lib in (leafax, torch):
        assert lib.einsum("ab,bc->ac", [x, x]) == ("ab,bc->ac", x, x)
