"""Python's work in a step is counted in bytecodes, which no noise changes; it may not grow.

The numbers are of CPython 3.11. Whoever makes a loop cheaper lowers its number.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

import leafax
import leafax.nn.functional as F

MOST = {"mlp": 6_760, "looked_at": 33_500, "chain": 9_655, "modules": 28_070}
WARM_UP = 12  # steps until nothing is learnt any more

pytestmark = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="other versions of Python have other bytecodes"
)


def count_bytecodes(step: Callable[[], Any]) -> int:
    """Count the bytecodes that a call executes."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        step()
    finally:
        sys.settrace(before)
    return count


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(shape[0]).normal(size=shape).astype(np.float32) * 0.1


def make_mlp(looks: bool) -> Callable[[], float]:
    """Return a training step of an MLP of three layers; its loss may be read before `backward`."""
    shapes = (32, 16), (32,), (32, 32), (32,), (10, 32), (10,)
    weights = [leafax.tensor(numbers(*shape)).requires_grad_() for shape in shapes]
    optimizer = leafax.optim.SGD(weights, lr=0.01)
    images, labels = numbers(8, 16), np.arange(8) % 10

    def step() -> float:
        x, y = leafax.from_numpy(images), leafax.from_numpy(labels)
        h = F.relu(F.linear(x, weights[0], weights[1]))
        h = F.relu(F.linear(h, weights[2], weights[3]))
        loss = F.cross_entropy(F.linear(h, weights[4], weights[5]), y)
        if looks:
            loss.item()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def make_chain() -> Callable[[], None]:
    """Return a forward and backward pass of a hundred products and sums."""
    w = leafax.ones(4, requires_grad=True)
    c = leafax.ones(4)

    def step() -> None:
        y = w
        for _ in range(50):
            y = (y * c) + c
        y.sum().backward()
        w.grad = None
        leafax.synchronize()

    return step


def make_modules() -> Callable[[], float]:
    """Return a training step of convolutions with batch norms, and attention, written with `nn`."""
    nn = leafax.nn
    blocks = [
        nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True))
        for _ in range(3)
    ]
    convolutions = nn.Sequential(*blocks)
    encoder = nn.TransformerEncoderLayer(16, 2, 16, dropout=0.0, batch_first=True)
    parameters = [*convolutions.parameters(), *encoder.parameters()]
    optimizer = leafax.optim.SGD(parameters, lr=0.01, momentum=0.9)
    images = numbers(2, 4, 4, 4)

    def step() -> float:
        x = convolutions(leafax.from_numpy(images)).flatten(2)
        loss = encoder(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


LOOPS: dict[str, Callable[[], Callable[[], Any]]] = {
    "mlp": lambda: make_mlp(looks=False),
    "looked_at": lambda: make_mlp(looks=True),
    "chain": make_chain,
    "modules": make_modules,
}


def count_loops() -> dict[str, int]:
    """Count the bytecodes of a step of each loop, once nothing is learnt any more."""
    counts = {}
    for name, make in LOOPS.items():
        step = make()
        for _ in range(WARM_UP):
            step()
        counts[name] = min(count_bytecodes(step) for _ in range(3))
    return counts


def test_bytecodes_of_a_step_do_not_grow() -> None:
    # A process of its own: what other tests left behind would be counted, too.
    run = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=True)
    counts = json.loads(run.stdout)
    assert {name: count for name, count in counts.items() if count > MOST[name]} == {}


if __name__ == "__main__":
    print(json.dumps(count_loops()))
