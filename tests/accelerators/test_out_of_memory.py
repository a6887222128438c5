"""Memory that is short: an error in PyTorch's words, which says what holds memory."""

import re
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

import leafax
from leafax._core.run_log import STEP, plans
from leafax._runtime.held_memory import held_memory
from leafax.functional.execution.memory import check_memory, copy_to
from leafax.functional.program.program import Program

SHORT = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 21474836480 bytes."


class Training:
    def __init__(self) -> None:
        self.w = leafax.nn.Parameter(leafax.from_numpy(np.ones((256, 128), np.float32)))
        self.optimizer = leafax.optim.Adam([self.w], lr=0.1)

    def backward(self) -> None:
        (self.w * self.w).sum().backward()

    def step(self) -> None:
        self.optimizer.zero_grad()
        self.backward()
        self.optimizer.step()


def sizes() -> dict[str, int]:
    leafax.synchronize()
    return {held.kind: held.nbytes for held in held_memory()}


def test_memory_is_counted_by_what_holds_it() -> None:
    before, size = sizes(), 256 * 128 * 4
    it = Training()
    it.step()
    it.step()
    other = leafax.from_numpy(np.zeros((100, 128), np.float32)) + 1
    view = other[:10]
    after = sizes()
    gained = {kind: n - before.get(kind, 0) for kind, n in after.items()}
    assert gained["parameters"] == gained["gradients"] == size
    assert 2 * size <= gained["optimizer state"] < 2 * size + 100  # and a count of steps
    assert other.nbytes <= gained["other tensors"] < 2 * other.nbytes
    assert view.shape == (10, 128) and it.w.grad is not None
    one = jax.local_devices()[0]
    assert sum(h.nbytes for h in held_memory(one)) <= sum(h.nbytes for h in held_memory())


def test_a_step_that_runs_out_of_memory_says_what_held_it(monkeypatch: Any) -> None:
    it = Training()
    plans.clear()
    for _ in range(3):
        it.step()
    before = it.w.tolist()
    (plan,) = {id(p): p for run, p in plans if run.reason == STEP and p.donate}.values()
    ran: Any = getattr(plan, "plan", plan)  # its inputs may come in another order

    def fail(*arrays: Any) -> Any:
        raise RuntimeError(SHORT)

    with monkeypatch.context() as patched:
        patched.setattr(ran, "_ready", (fail, ran._ready[1]))
        with pytest.raises(leafax.OutOfMemoryError) as found:
            it.step()
    text = str(found.value)
    assert re.match(r"CPU out of memory\. Tried to allocate 20\.0 GiB\. The program needs ", text)
    assert re.search(r" for temporary values and .* for results, beside .* of inputs\. ", text)
    assert "Its largest value is float32[256, 128] in " in text and f"{__file__}:" in text
    held = text[text.index("Held are ") :]
    assert re.search(r"Held are .* by parameters \([\d,]+ arrays\), ", held)
    assert re.search(r" by optimizer state \([\d,]+ arrays\)", held)
    line = Training.step.__code__.co_firstlineno + 3
    noted = f"in the program that optimizer.step() ran at {__file__}:{line}"
    assert noted in found.value.__notes__
    assert it.w.tolist() == before  # nothing was changed
    it.step()
    assert it.w.tolist() != before


def test_a_program_is_measured_by_the_device_that_it_runs_on() -> None:
    gpu = SimpleNamespace(platform="gpu", memory_stats=lambda: {"bytes_limit": 1 << 20})
    compiled = SimpleNamespace(
        memory_analysis=lambda: SimpleNamespace(temp_size_in_bytes=2 << 20),
        output_shardings=[SimpleNamespace(addressable_devices=(gpu,))],
    )
    with pytest.raises(leafax.OutOfMemoryError) as found:
        check_memory(compiled, Program([], []))
    assert str(found.value).startswith(
        "CUDA out of memory. This program needs 2.0 MiB for temporary values, and the device has "
        "1.0 MiB."
    )


def test_errors_are_known_by_pytorchs_names() -> None:
    assert leafax.cuda.OutOfMemoryError is leafax.OutOfMemoryError
    assert issubclass(leafax.OutOfMemoryError, RuntimeError)


def test_a_copy_that_does_not_fit_says_of_what(monkeypatch: pytest.MonkeyPatch) -> None:
    array, place = np.zeros((3, 4), np.float32), jax.local_devices()[0]
    assert copy_to(array, place).devices() == {place}

    def fail(error: Exception) -> Any:
        def put(*args: Any, **options: Any) -> Any:
            raise error

        return put

    monkeypatch.setattr(jax, "device_put", fail(RuntimeError(SHORT)))
    text = r"^CPU out of memory\. Tried to allocate 20\.0 GiB\. It was for a copy of "
    with pytest.raises(leafax.OutOfMemoryError, match=text + r"float32\[3, 4\], 48 bytes\."):
        copy_to(array, place)
    monkeypatch.setattr(jax, "device_put", fail(ValueError("another")))
    with pytest.raises(ValueError, match="another"):
        copy_to(array, place)
