"""Profiles: times of ops by name, line and module, schedules, and the files that they write."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
import torch
from flax import linen, nnx

import leafax
from leafax.adapters import linen as linen_adapter
from leafax.adapters import nnx as nnx_adapter
from leafax.autograd._profile_session import _Reader
from leafax.autograd.profiler_util import EventList
from leafax.functional.execution.instructions import read_instructions
from leafax.functional.lowering.scopes import read_scope
from leafax.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule

LINES: dict[str, int] = {}


class Net(leafax.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = leafax.nn.ModuleList([leafax.nn.Linear(8, 8) for _ in range(2)])
        self.head = leafax.nn.Linear(8, 2)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = leafax.tanh(layer(x))
        with record_function("the head"):
            return self.head(x)


class Training:
    def __init__(self) -> None:
        self.net = Net()
        self.optimizer = leafax.optim.SGD(self.net.parameters(), lr=0.1)
        self.x = leafax.from_numpy(np.ones((4, 8), np.float32))
        for _ in range(3):
            self.step()

    def step(self) -> float:
        loss = self.net(self.x).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return float(loss.item())


@pytest.fixture(scope="module")
def training() -> Training:
    return Training()


@pytest.fixture(scope="module")
def found(training: Training) -> Iterator[profile]:
    leafax.explain(clear=True)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        for _ in range(4):
            with record_function("a step"):
                training.step()
    assert leafax.explain().compiles == 0  # a profile changes no program
    yield profiler


def test_ops_are_counted_by_name(found: profile) -> None:
    averages = {event.key: event for event in found.key_averages()}
    assert averages["aten::addmm"].count == 3 * 4  # three layers, four steps
    assert averages["aten::addmm.backward"].count == 3 * 4
    assert averages["optim.SGD"].count == 4
    assert averages["a step"].count == averages["the head"].count == 4
    assert averages["a step"].is_user_annotation
    assert averages["a step"].cpu_time_total > averages["the head"].cpu_time_total > 0
    assert averages["dispatch of a program"].count == len(leafax.explain())  # one a run
    own = sum(event.self_cpu_time_total for event in averages.values())
    assert found.key_averages().self_cpu_time_total == pytest.approx(own)
    assert found.key_averages().total_average().self_cpu_time_total == pytest.approx(own)


def test_events_have_numbers_of_their_own(found: profile) -> None:
    numbers = [event.id for event in found.events()]
    assert len({*numbers}) == len(numbers) > 0


def test_ops_have_modules_and_lines(found: profile) -> None:
    modules = {event.key: event for event in found.by_module()}
    assert {"Net.layers.0", "Net.layers.1", "Net/the head", "Net", "<none>"} & {*modules}
    paths = {event.path for event in found.events() if event.name == "aten::addmm"}
    assert paths == {"Net.layers.0", "Net.layers.1", "the head/Net.head"}
    code = Net.forward.__code__
    lines = {event.key for event in found.by_line()}
    assert f"{Path(__file__).name}:{code.co_firstlineno + 2}" in lines
    backward = next(e for e in found.events() if e.name == "aten::tanh.backward")
    assert backward.where == (__file__, code.co_firstlineno + 2)  # of what it differentiates
    by_place = found.key_averages(group_by_stack_n=1, group_by_input_shape=True)
    head = next(e for e in by_place if e.key == "aten::addmm" and "Net.head" in e.stack[0])
    assert head.stack == [f"{__file__}({code.co_firstlineno + 4}): the head/Net.head"]
    assert head.input_shapes == [[2], [4, 8], [2, 8]] or head.input_shapes == [[2], [4, 8], [8, 2]]


def test_a_table_is_pytorchs(found: profile) -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
        torch.ones(3) + 1
    options: dict[str, Any] = {"sort_by": "self_cpu_time_total", "row_limit": 1}
    mine = found.key_averages().table(**options).split("\n")
    other = theirs.key_averages().table(**options).split("\n")
    assert mine[1].split() == other[1].split()  # the headings
    assert len(mine) == len(other)
    assert mine[-2].startswith("Self CPU time total: ") and mine[-2][-2:] in ("us", "ms")
    shares = [row.split("  ") for row in str(found.key_averages()).split("\n")[3:-3]]
    own = [float(next(v for v in row if v.strip().endswith("%")).strip()[:-1]) for row in shares]
    assert sum(own) == pytest.approx(100, abs=0.2)
    limited = found.key_averages().table(header="HEAD", time_unit="ms", max_name_column_width=9)
    assert limited.split("\n")[1] == "HEAD" and "aten::..." in limited


def test_traces_are_written(found: profile, tmp_path: Path) -> None:
    found.add_metadata("run", "7")
    found.add_metadata_json("more", "[1]")
    found.export_chrome_trace(str(tmp_path / "x.json"))
    found.export_chrome_trace(str(tmp_path / "x.json.gz"))
    written = json.loads((tmp_path / "x.json").read_text())
    assert written == json.loads(gzip.decompress((tmp_path / "x.json.gz").read_bytes()))
    assert written["run"] == "7" and written["more"] == [1]
    op = next(e for e in written["traceEvents"] if e["name"] == "aten::tanh")
    assert op["ph"] == "X" and op["dur"] > 0 and op["args"]["Module Hierarchy"] == "Net"
    assert op["args"]["Source Location"].startswith(f"{__file__}:")
    found.export_stacks(str(tmp_path / "stacks"), "self_cpu_time_total")
    assert "Net.layers.0" in (tmp_path / "stacks").read_text()
    with pytest.raises(ValueError, match="metric should be one of: "):
        found.export_stacks(str(tmp_path / "stacks"), "flops")


def test_a_schedule_records_its_steps(training: Training, tmp_path: Path) -> None:
    ready: list[tuple[int, Any]] = []
    handler = leafax.profiler.tensorboard_trace_handler(str(tmp_path / "runs"), "worker")

    def on_ready(profiler: profile) -> None:
        marks = [e.name for e in profiler.events() if e.name.startswith("ProfilerStep")]
        ready.append((profiler.step_num, marks))
        handler(profiler)

    plan = schedule(wait=1, warmup=1, active=2, repeat=1)
    with profile(schedule=plan, on_trace_ready=on_ready) as profiler:
        for _ in range(6):
            training.step()
            profiler.step()
    assert ready == [(4, ["ProfilerStep#2", "ProfilerStep#3"])]
    assert profiler.current_action is ProfilerAction.NONE
    names = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert names[0] == "plugins" and names[1].startswith("worker.")
    assert names[1].endswith(".pt.trace.json")
    assert list((tmp_path / "runs").rglob("*.xplane.pb"))  # for xprof


def test_schedules_are_pytorchs() -> None:
    kinds = {"wait": 1, "warmup": 1, "active": 2, "repeat": 2, "skip_first": 1}
    ours = [schedule(**kinds)(i).name for i in range(12)]
    assert ours == [torch.profiler.schedule(**kinds)(i).name for i in range(12)]


@pytest.mark.parametrize("t", [torch, leafax])
def test_misuse_raises_pytorchs_errors(t: Any) -> None:
    idle, cpu = t.profiler.profile(), t.profiler.ProfilerActivity.CPU
    for call, text in (
        (idle.key_averages, "Profiler must be initialized before getting key averages"),
        (idle.events, "Profiler must be initialized before accessing events"),
        (lambda: idle.export_chrome_trace("x"), "before exporting chrome trace"),
        (lambda: t.profiler.profile(activities=[]), "No valid profiler activities found"),
    ):
        with pytest.raises(AssertionError, match=text):
            call()
    with pytest.raises(ValueError, match="CPU specified more than once"):
        t.profiler.profile(activities=[cpu, cpu])
    with pytest.raises(TypeError, match="Expected ProfilerActivity or dict, got <class 'str'>"):
        t.profiler.profile(activities=[cpu, "CPU"])
    assert repr(t.autograd.profiler.profile()) == "<unfinished torch.autograd.profile>"


def test_one_profile_at_a_time() -> None:
    with (
        leafax.autograd.profiler.profile() as outer,
        pytest.raises(RuntimeError, match="another profile is being recorded"),
        profile(),
    ):
        pass
    assert not leafax.autograd._profiler_enabled()
    assert outer.function_events == [] and outer.table() == ""
    with pytest.raises(RuntimeError, match="not reentrant"), outer:
        pass
    with leafax.autograd.profiler.profile(enabled=False) as nothing:
        pass
    assert nothing is None


def test_a_decorated_function_is_a_block() -> None:
    @record_function("twice")
    def twice(n: int) -> int:
        return n if not n else twice(n - 1)

    with leafax.autograd.profiler.profile() as found:
        assert leafax.autograd._profiler_enabled()
        twice(2)
    (average,) = [e for e in found.key_averages() if e.key == "twice"]
    assert average.count == 3


def test_modules_of_flax_are_in_the_metadata() -> None:
    class Linen(linen.Module):
        @linen.compact
        def __call__(self, x: Any) -> Any:
            return linen.Dense(2, name="out")(linen.Dense(3, name="first")(x))

    class Nnx(nnx.Module):
        def __init__(self) -> None:
            self.parts = nnx.List([nnx.Linear(3, 2, rngs=nnx.Rngs(0))])

        def __call__(self, x: Any) -> Any:
            return self.parts[0](x)

    module = Linen()
    models = (
        linen_adapter.Model(module, module.init(jax.random.key(0), np.ones((1, 3), "f"))),
        nnx_adapter.Model(Nnx()),
    )
    for model, want in zip(models, ({"Linen/first", "Linen/out"}, {"Nnx/parts.0"}), strict=True):
        line = test_modules_of_flax_are_in_the_metadata.__code__.co_firstlineno
        optimizer = leafax.optim.SGD(model.parameters(), lr=0.1)
        with profile() as found:
            for _ in range(3):
                model(leafax.ones(4, 3)).sum().backward()
                optimizer.step()
        paths = {e.path for e in found.events() if e.where and e.where[1] > line}
        assert want <= paths


def test_instructions_are_read() -> None:
    text = """HloModule jit_f

%fused (p: f32[2]) -> f32[2] {
  ROOT %t = f32[2] tanh(%p), metadata={op_name="jit(f)/a.py:3 tanh/tanh" stack_frame_id=3}
}

ENTRY %main (x: f32[2]) -> f32[2] {
  %x = f32[2]{0} parameter(0), metadata={op_name="x"}
  ROOT %fusion.1 = f32[2]{0} fusion(%x), kind=kLoop, calls=%fused
}
"""
    names = read_instructions(text)
    assert names["x"] == "x" and names["fusion.1"] == "jit(f)/a.py:3 tanh/tanh"
    assert read_scope("jit(f)/while/body/add") is None


def plane(name: str, **lines: list[tuple[str, float, float, dict[str, Any]]]) -> Any:
    """Make a plane of a profile, from the name, start, length (in us) and facts of its events."""
    made = [
        SimpleNamespace(
            name=line.replace("_", " "),
            events=[
                SimpleNamespace(name=n, start_ns=at * 1e3, duration_ns=took * 1e3, stats=facts)
                for n, at, took, facts in events
            ],
        )
        for line, events in lines.items()
    ]
    return SimpleNamespace(name=name, lines=made)


def test_events_of_accelerators_are_read() -> None:
    gpu = plane(
        "/device:GPU:0",
        Stream_13=[
            ("sgemm", 10, 30, {"hlo_op": "dot.1", "hlo_module": "jit_of_mine"}),
            ("loop", 50, 5, {"hlo_op": "copy.2", "hlo_module": "jit_leafax_op_addmm"}),
            ("MemcpyH2D", 60, 2, {}),
        ],
    )
    op = {"tf_op": "jit(leafax_program_1)/Net.head/train.py:7 addmm.backward/dot_general"}
    tpu = plane(
        "/device:TPU:0", XLA_Modules=[("jit_leafax_program_1", 0, 100, {})],
        XLA_Ops=[("%fusion.3 = ...", 10, 40, op), ("%while", 5, 90, {})],
    )  # fmt: skip
    reader = _Reader(False)
    for one in (gpu, tpu, plane("/host:metadata", a=[("x", 0, 1, {})])):
        reader.plane(one)
    found = {event.name: event for event in reader.events}
    assert {*found} == {
        "jax::of_mine", "aten::addmm", "MemcpyH2D", "aten::addmm.backward", "%while"
    }  # fmt: skip
    backward = found["aten::addmm.backward"]
    assert (backward.where, backward.path) == (("train.py", 7), "Net.head")
    assert backward.device_time_total == 40 and backward.cpu_time_total == 0
    assert found["%while"].self_device_time_total == 90 - 40  # what runs within it is not its own
    assert reader.device == "tpu"
    table = EventList(reader.events, "cuda").key_averages().table(sort_by="cuda_time_total")
    assert "Self CUDA %" in table and table.split("\n")[3].split()[0] == "%while"
    assert "Self CUDA time total: 127.000us" in table
