"""Precision of float32 products: what the program says to XLA, and the numbers that come."""

import re
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest
from helpers.on_device import PLATFORM, error

import leafax
import leafax.nn.functional as F
from leafax._runtime import cut
from leafax.backends import _float32_precision

pytestmark = pytest.mark.usefixtures("all_compiled")
R = np.random.default_rng(0)
X = R.standard_normal((4, 3, 20, 20)).astype("float32")
W = R.standard_normal((6, 3, 3, 3)).astype("float32")
V = R.standard_normal((6, 5)).astype("float32")


@pytest.fixture(autouse=True)
def as_at_first() -> Iterator[None]:
    _float32_precision.forget()
    yield
    _float32_precision.forget()


def step(*tensors: Any) -> Any:
    """Record a convolution, a product and the gradients of both."""
    x, w, v = tensors
    y = F.conv2d(x, w).relu().mean((2, 3)) @ v
    y.sum().backward()
    return w.grad


def leaves() -> list[Any]:
    return [leafax.tensor(a, requires_grad=a is not X) for a in (X, W, V)]


def precisions(text: str) -> dict[str, set[str]]:
    """Return the precisions of the products in a program's text, by kind."""
    found: dict[str, set[str]] = {}
    for line in text.splitlines():
        kind = re.search(r"stablehlo\.(dot_general|convolution)", line)
        if kind:
            said = re.search(r"precision(?:_config)? = \[([^\]]*)\]", line)
            names = set(re.findall("HIGHEST|HIGH|DEFAULT", said.group(1))) if said else {"DEFAULT"}
            found.setdefault(kind.group(1), set()).update(names)
    return found


def of_step() -> dict[str, set[str]]:
    """Run the step, and return the precisions in the program that ran."""
    tensors = leaves()
    leafax.synchronize()
    found = step(*tensors)
    leafax.synchronize()
    del found
    return of_last_program()


def of_last_program() -> dict[str, set[str]]:
    plan = cut.plans[-1][1]
    avals = [entry.aval.struct() for entry in plan.program.entries if hasattr(entry, "aval")]
    return precisions(plan.lowered(avals).as_text())


@pytest.mark.parametrize(
    ("tell", "matmul", "conv"),
    [
        (lambda: None, "HIGHEST", "HIGH"),
        (lambda: leafax.set_float32_matmul_precision("high"), "HIGH", "HIGH"),
        (lambda: leafax.set_float32_matmul_precision("medium"), "DEFAULT", "HIGH"),
        (lambda: setattr(leafax.backends.cuda.matmul, "allow_tf32", True), "HIGH", "HIGH"),
        (lambda: setattr(leafax.backends.cudnn, "allow_tf32", False), "HIGHEST", "HIGHEST"),
        (lambda: setattr(leafax.backends, "fp32_precision", "ieee"), "HIGHEST", "HIGHEST"),
        (lambda: setattr(leafax.backends.cudnn.conv, "fp32_precision", "ieee"),
         "HIGHEST", "HIGHEST"),
    ],
    ids=["at first", "high", "medium", "allow", "cudnn", "all", "conv"],
)  # fmt: skip
def test_programs_say_what_was_told(tell: Any, matmul: str, conv: str) -> None:
    tell()
    assert of_step() == {"dot_general": {matmul}, "convolution": {conv}}


def test_a_change_compiles_once_and_is_never_stale() -> None:
    def told(precision: str) -> tuple[dict[str, set[str]], int]:
        leafax.set_float32_matmul_precision(precision)
        leafax.explain(clear=True)
        return of_step(), leafax.explain().compiles

    for precision in ("highest", "high"):
        told(precision), told(precision)
    assert told("highest") == ({"dot_general": {"HIGHEST"}, "convolution": {"HIGH"}}, 0)
    assert told("high") == ({"dot_general": {"HIGH"}, "convolution": {"HIGH"}}, 0)
    assert told("medium")[0]["dot_general"] == {"DEFAULT"}


def test_what_was_recorded_before_a_change_keeps_its_precision() -> None:
    a = leafax.randn(40, 40, requires_grad=True)
    leafax.synchronize()
    y = a @ a
    leafax.set_float32_matmul_precision("high")
    z = y @ a
    z.sum().backward()
    leafax.synchronize()
    del y, z
    assert of_last_program() == {"dot_general": {"HIGHEST", "HIGH"}}


def test_a_compiled_step_is_recorded_anew() -> None:
    a, b = leafax.randn(30, 30, requires_grad=True), leafax.randn(30, 30)
    product = leafax.compile(lambda x: (x @ b).sum())
    found = []
    for precision in ("highest", "highest", "high", "high", "highest"):
        leafax.set_float32_matmul_precision(precision)
        product(a).item()
        found.append(of_last_program()["dot_general"])
    assert found == [{"HIGHEST"}, {"HIGHEST"}, {"HIGH"}, {"HIGH"}, {"HIGHEST"}]


def test_halves_and_doubles_are_left_alone() -> None:
    for dtype in (leafax.bfloat16, leafax.float64)[: 1 if PLATFORM == "tpu" else 2]:
        a = leafax.randn(30, 30).to(dtype).requires_grad_()
        leafax.synchronize()
        y = (a @ a).sum()
        leafax.synchronize()
        assert of_last_program() == {"dot_general": {"DEFAULT"}}
        del y


def test_recurrent_layers_have_their_own() -> None:
    layer, x = leafax.nn.LSTM(3, 5), leafax.randn(6, 2, 3)
    leafax.synchronize()
    y = layer(x)[0]
    leafax.synchronize()
    assert of_last_program() == {"dot_general": {"HIGHEST", "HIGH"}}, "of inputs, and of steps"
    del y


def test_functions_of_jax_follow_jax_until_leafax_is_told() -> None:
    def product(x: Any, y: Any) -> Any:
        return x @ y

    a, b = leafax.randn(30, 40, requires_grad=True), leafax.randn(40, 20)
    leafax.synchronize()

    def of_call() -> dict[str, set[str]]:
        y = leafax.call_jax(product, a, b)
        leafax.synchronize()
        del y
        return of_last_program()

    assert of_call() == {"dot_general": {"DEFAULT"}}
    with jax.default_matmul_precision("highest"):
        assert of_call() == {"dot_general": {"HIGHEST"}}
    assert of_call() == {"dot_general": {"DEFAULT"}}
    leafax.set_float32_matmul_precision("high")
    assert of_call() == {"dot_general": {"HIGH"}}
    leafax.backends.cudnn.allow_tf32 = False  # JAX has one for both
    assert of_call() == {"dot_general": {"HIGHEST"}}


def test_flax_models_follow_what_was_told() -> None:
    linen = pytest.importorskip("flax.linen")
    from leafax.adapters.linen import Model

    module = linen.Dense(8)
    model = Model(module, module.init(jax.random.key(0), np.ones((1, 30), "float32")))
    x = leafax.randn(20, 30)
    found = []
    for precision in (None, "high", "highest"):
        if precision is not None:
            leafax.set_float32_matmul_precision(precision)
        leafax.synchronize()
        model(x).sum().backward()
        leafax.synchronize()
        found.append(of_last_program()["dot_general"])
        for p in model.parameters():
            p.grad = None
    assert found == [{"DEFAULT"}, {"HIGH"}, {"HIGHEST"}]


def test_numbers_are_as_exact_as_told() -> None:
    a, b = (R.standard_normal((256, 256)).astype("float32") for _ in "ab")
    exact = a.astype("float64") @ b.astype("float64")
    products = {}
    for precision in ("highest", "high", "medium"):
        leafax.set_float32_matmul_precision(precision)
        products[precision] = error(leafax.tensor(a) @ leafax.tensor(b), exact)
    assert products["highest"] < 2e-6 and products["high"] < 2e-3 and products["medium"] < 2e-2
    if PLATFORM == "cpu":
        assert max(products.values()) < 2e-6, "a CPU always multiplies in float32"
