"""Training steps of each kind that the examples have: numbers, compiles, programs, memory."""

from typing import Any

import numpy as np
import pytest
from helpers.device_models import TASKS, Task, convnet
from helpers.on_device import PLATFORM, error, live_bytes, tolerance

import leafax
import leafax.nn.functional as F
from leafax import nn

STEPS = 3


def tensors(task: Task, i: int, dtype: Any, device: Any) -> list[Any]:
    """Return the arrays of a batch on a device; floating point ones in a dtype."""
    return [
        leafax.tensor(x, device=device).to(dtype if x.dtype.kind == "f" else leafax.int64)
        for x in task.batch(i)
    ]


class Trainer:
    """Makes the steps of a task.

    Args:
      state: what the model begins with, as NumPy has it.
    """

    def __init__(self, task: Task, state: Any, dtype: Any, device: Any = None) -> None:
        self.task, self.dtype, self.device = task, dtype, device
        self.model = task.model()
        self.model.load_state_dict({name: leafax.tensor(x) for name, x in state.items()})
        self.model.to(device=device, dtype=dtype)
        trained = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = task.optimizer(trained)

    def __call__(self, i: int) -> float:
        batch = tensors(self.task, i % STEPS, self.dtype, self.device)
        loss = self.task.loss(self.model, *batch)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())


@pytest.mark.quick(3)
@pytest.mark.parametrize("name", TASKS)
def test_steps(name: str) -> None:
    """Losses are those in float64 on a CPU; later steps compile nothing and keep no more memory."""
    task = TASKS[name]
    state = {name: x.cpu().numpy() for name, x in task.model().state_dict().items()}
    exact = Trainer(task, state, leafax.float64, "cpu")
    step = Trainer(task, state, leafax.float32)
    expected = [exact(i) for i in range(STEPS)]
    found = [step(i) for i in range(STEPS)]
    uses_convolutions = name in ("convnet", "frozen convnet", "words")
    most = 10 * tolerance("float32", uses_convolutions)
    assert found == pytest.approx(expected, rel=most), (found, expected)
    leafax.explain(clear=True)
    before = live_bytes()
    more = [step(i) for i in range(2 * STEPS)]
    told = leafax.explain()
    assert told.compiles == 0 and len(told) == 2 * STEPS, told
    assert live_bytes() <= before
    assert more[-1] < more[0] < found[0] * 1.5
    frozen = [p for p in step.model.parameters() if not p.requires_grad]
    assert all(p.grad is None for p in frozen) and bool(frozen) == (name == "frozen convnet")
    places = {p.device for p in step.model.parameters()}
    assert places == {leafax.zeros(1).device}


def test_a_step_is_numpys() -> None:
    """SGD with momentum on two layers, its gradients written by hand."""
    rng = np.random.default_rng(0)
    w1, w2 = rng.standard_normal((6, 9)) / 3, rng.standard_normal((9, 4)) / 3
    data = [(rng.standard_normal((5, 6)), rng.standard_normal((5, 4))) for _ in range(3)]
    ours = [leafax.tensor(w.astype("float32"), requires_grad=True) for w in (w1, w2)]
    optimizer = leafax.optim.SGD(ours, lr=0.1, momentum=0.9, weight_decay=0.01)
    velocities = [0.0, 0.0]
    for x, y in data:
        given = (leafax.tensor(v.astype("float32")) for v in (x, y))
        loss = _mlp_loss(*ours, *given)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hidden = np.tanh(x @ w1)
        off = 2 * (hidden @ w2 - y) / y.size
        slopes = [x.T @ (off @ w2.T * (1 - hidden**2)), hidden.T @ off]
        velocities = [0.9 * v + g + 0.01 * w
                      for v, g, w in zip(velocities, slopes, (w1, w2), strict=True)]  # fmt: skip
        assert error(loss, ((hidden @ w2 - y) ** 2).mean()) < tolerance("float32")
        w1, w2 = w1 - 0.1 * velocities[0], w2 - 0.1 * velocities[1]
    assert max(error(ours[0], w1), error(ours[1], w2)) < tolerance("float32")


def _mlp_loss(w1: Any, w2: Any, x: Any, y: Any) -> Any:
    return F.mse_loss((x @ w1).tanh() @ w2, y)


def test_a_compiled_step_replays() -> None:
    task = TASKS["transformer"]
    state = {name: x.cpu().numpy() for name, x in task.model().state_dict().items()}
    plain, compiled = (Trainer(task, state, leafax.float32) for _ in range(2))

    @leafax.compile
    def step(x: Any) -> Any:
        loss = task.loss(compiled.model, x, None)
        compiled.optimizer.zero_grad()
        loss.backward()
        compiled.optimizer.step()
        return loss

    for i in range(5):
        x = tensors(task, i % STEPS, leafax.float32, None)[0]
        assert float(step(x).detach()) == pytest.approx(plain(i), rel=1e-4)


def test_autocast_and_a_scaler() -> None:
    model = convnet()
    optimizer = leafax.optim.Adam(model.parameters(), 1e-2)
    device = "cuda" if PLATFORM == "cuda" else "cpu"
    scaler = leafax.amp.GradScaler(device, enabled=PLATFORM == "cuda")
    x, y = tensors(TASKS["convnet"], 0, leafax.float32, None)
    losses = []
    for _ in range(6):
        with leafax.autocast(device, dtype=leafax.bfloat16):
            out = model(x)
            loss = F.cross_entropy(out, y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(float(loss.detach()))
    assert out.dtype == leafax.bfloat16 and losses[-1] < losses[0]
    assert all(p.grad is not None and p.grad.dtype == leafax.float32 for p in model.parameters())


def test_a_flax_model_under_optax() -> None:
    linen, optax = pytest.importorskip("flax.linen"), pytest.importorskip("optax")
    import jax

    from leafax.adapters.linen import Model

    module = linen.Sequential([linen.Dense(16), linen.tanh, linen.Dense(3)])
    model = Model(module, module.init(jax.random.key(0), np.ones((1, 7), "float32")))
    model.freeze("layers_0")
    optimizer = leafax.optim.Optax(model.parameters(), optax.adam(1e-2))
    x, y = leafax.randn(10, 7), leafax.randint(0, 3, (10,))
    losses = []
    for i in range(8):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
        if i == 2:
            leafax.explain(clear=True)
            before = live_bytes()
    assert losses[-1] < losses[0] and leafax.explain().compiles == 0 and live_bytes() <= before


def test_gradients_come_in_parts_to_the_same() -> None:
    layer, x = nn.Linear(5, 3), leafax.randn(12, 5)
    layer(x).square().mean().backward()
    whole = [p.grad.clone() for p in layer.parameters()]
    layer.zero_grad()
    for part in x.chunk(4):
        (layer(part).square().mean() / 4).backward()
    for one, p in zip(whole, layer.parameters(), strict=True):
        assert error(p.grad, one.cpu().numpy()) < tolerance("float32")
