"""Batches that are brought to a device before they are asked for."""

import subprocess
import sys
from typing import Any, NamedTuple

import pytest

import leafax
from leafax.utils.data import DataLoader, prefetch


class Recorded:
    """Something with a method `to`, which notes when it is called."""

    log: list[str] = []

    def __init__(self, name: str) -> None:
        self.name = name

    def to(self, device: Any, non_blocking: bool = False) -> str:
        assert non_blocking and device == leafax.device("cpu")
        self.log.append(f"to {self.name}")
        return self.name


def test_copies_begin_before_batches_are_asked_for() -> None:
    Recorded.log.clear()
    for name in prefetch((Recorded(str(k)) for k in range(4)), "cpu", size=2):
        Recorded.log.append(f"step {name}")
    assert Recorded.log == [
        "to 0", "to 1", "to 2", "step 0", "to 3", "step 1", "step 2", "step 3",
    ]  # fmt: skip


class Pair(NamedTuple):
    x: Any
    names: Any


def test_containers_are_rebuilt() -> None:
    batch = {"pair": Pair(Recorded("a"), ["n", b"m"]), "more": [(Recorded("b"), 3)]}
    (found,) = prefetch([batch], "cpu")
    assert found == {"pair": Pair("a", ["n", b"m"]), "more": [("b", 3)]}


def test_it_is_iterated_again_and_has_a_length() -> None:
    loader: Any = DataLoader(range(5), batch_size=2)  # type: ignore[arg-type]
    batches = prefetch(loader, "cpu", size=9)
    assert len(batches) == 3
    for _ in range(2):
        assert [b.tolist() for b in batches] == [[0, 1], [2, 3], [4]]
    with pytest.raises(ValueError, match="`size` must be positive, got 0"):
        prefetch(loader, "cpu", size=0)


SCRIPT = """
import leafax, numpy as np
from leafax.utils.data import DataLoader, TensorDataset, prefetch
x = leafax.from_numpy(np.arange(40, dtype=np.float32).reshape(10, 4))
w = leafax.zeros(4, requires_grad=True, device="cpu:1")
optimizer = leafax.optim.SGD([w], lr=1e-4)
losses = []
for _ in range(3):
    for (batch,) in prefetch(DataLoader(TensorDataset(x), batch_size=5), "cpu:1"):
        assert str(batch.device) == "cpu:1", batch.device
        loss = (batch @ w - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
assert str(w.device) == str(loss.device) == "cpu:1" and losses[-1] < losses[0]
steps = [run for run in leafax.explain() if run.reason == "optimizer.step()"]
assert [run.how for run in steps[3:]] == ["cached"] * len(steps[3:]), steps
print("well")
"""


def test_steps_on_another_device_compile_once() -> None:
    code = "import jax; jax.config.update('jax_num_cpu_devices', 2)\n" + SCRIPT
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == "well", ran.stderr
