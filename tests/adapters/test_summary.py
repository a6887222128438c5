"""The table of a model: what trains, what it costs."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import optax
import pytest
from flax import linen as nn

import leafax as torch
from leafax.adapters import summary
from leafax.adapters.linen import Model


class Net(nn.Module):
    @nn.compact
    def __call__(self, x: jax.Array, train: bool) -> jax.Array:
        x = nn.BatchNorm(not train, name="bn")(nn.Dense(4, name="backbone")(x))
        return nn.Dense(2, name="head", param_dtype=jnp.bfloat16)(x)


def model() -> Model:
    return Model(Net(), Net().init(jax.random.key(0), jnp.ones((2, 3)), False)).freeze("backbone")


def test_rows_and_totals() -> None:
    rows = {row.path: row for row in summary(model())}
    assert rows["backbone.kernel"][1:] == ((3, 4), "float32", "frozen", 1, 12, 48, 0, "")
    assert rows["head.kernel"][1:] == ((4, 2), "bfloat16", "trainable", 1, 8, 16, 0, "")
    assert rows["bn.mean"].kind == "buffer"
    totals = {row.kind: row for row in summary(model()).totals}
    assert (totals["frozen"].numbers, totals["frozen"].nbytes) == (16, 64)
    assert totals["trainable"].dtype == "bfloat16, float32"


@pytest.mark.parametrize(
    ("make", "shared"),
    [
        (lambda p: torch.optim.Adam(p), 0),
        (lambda p: torch.optim.Optax(p, optax.adam(1e-3)), 4),
    ],
)
def test_optimizer_state_by_parameter(make: object, shared: int) -> None:
    m = model()
    optimizer = make(m.parameters())  # type: ignore[operator]
    m(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    table = summary(m, optimizer)
    held = {row.path: row.state_nbytes for row in table}
    own = 0 if shared else 4  # leafax's Adam counts steps for each parameter
    assert held["bn.scale"] == 2 * 16 + own and held["head.bias"] == 2 * 4 + own
    assert held["backbone.kernel"] == 0 and table.shared_nbytes == shared


def test_depth_takes_parts_together() -> None:
    rows = summary(model(), depth=1).rows
    assert [(row.path, row.kind, row.tensors) for row in rows] == [
        ("backbone", "frozen", 2), ("bn", "trainable", 2), ("head", "trainable", 2),
        ("bn", "buffer", 2),
    ]  # fmt: skip


def test_text_with_and_without_rich() -> None:
    table = summary(model())
    for text in (str(table), table.text()):
        line = next(line for line in text.splitlines() if "backbone.kernel" in line)
        assert line.split() == ["backbone.kernel", "[3,", "4]", "float32", "frozen", "48", "B"]
        assert "total trainable" in text and "18 numbers" in text


def test_adapters_import_nothing_unasked() -> None:
    code = (
        "import sys, leafax.adapters; from leafax.adapters import summary; "
        "assert not {'flax', 'optax', 'rich'} & set(sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
