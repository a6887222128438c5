"""`call_jax`: JAX functions as ops."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import leafax
from leafax.backends import _float32_precision


def test_pytrees_go_in_and_out_and_gradients_flow() -> None:
    def fn(tree: dict[str, jax.Array], scale: float) -> dict[str, jax.Array]:
        return {"sum": (tree["a"] * scale).sum() + tree["b"], "index": tree["i"] + 1}

    a = leafax.tensor([1.0, 2.0], requires_grad=True)
    b = leafax.tensor(3.0)
    out = leafax.call_jax(fn, {"a": a, "b": b, "i": leafax.tensor([1])}, 2.0)
    assert out["index"].tolist() == [2]
    assert not out["index"].requires_grad and out["sum"].requires_grad
    out["sum"].backward()
    assert a.grad is not None and a.grad.tolist() == [2.0, 2.0] and b.grad is None


def test_it_is_part_of_the_one_program() -> None:
    def fn(x: jax.Array) -> jax.Array:
        return jnp.tanh(x)

    w = leafax.tensor([0.5], requires_grad=True)
    optimizer = leafax.optim.SGD([w], lr=0.1)
    leafax.explain(clear=True)
    for _ in range(4):
        optimizer.zero_grad()
        leafax.call_jax(fn, w * 2).sum().backward()
        optimizer.step()
    assert len(leafax.explain()) == 4 and leafax.explain().compiles == 1


def test_it_is_traced_in_the_users_setting() -> None:
    seen = []

    def fn(x: jax.Array, i: jax.Array) -> jax.Array:
        made = jnp.zeros(2) + jnp.arange(2)
        seen.append((x.dtype.name, i.dtype.name, made.dtype.name))
        return x.sum() + made.sum() + i.sum()

    x = leafax.tensor([1.0], dtype=leafax.float64, requires_grad=True)
    out = leafax.call_jax(fn, x, leafax.tensor([1]))
    assert out.dtype is leafax.float32
    out.backward()
    assert set(seen) == {("float32", "int32", "float32")}
    assert x.grad is not None and x.grad.dtype is leafax.float64


def test_custom_vjp_is_respected_also_after_a_cut() -> None:
    @jax.custom_vjp
    def fn(x: jax.Array) -> jax.Array:
        return x * 2

    fn.defvjp(lambda x: (fn(x), x), lambda x, g: (g * 100,))

    def call(x: jax.Array) -> jax.Array:
        return fn(x)

    for observe in (False, True):
        x = leafax.tensor([1.0], requires_grad=True)
        y = leafax.call_jax(call, x)
        if observe:
            y.tolist()
        y.sum().backward()
        assert x.grad is not None and x.grad.tolist() == [100.0]


def test_double_backward() -> None:
    x = leafax.tensor([0.3], dtype=leafax.float32, requires_grad=True)
    (g,) = leafax.autograd.grad(leafax.call_jax(jnp.sin, x).sum(), x, create_graph=True)
    (h,) = leafax.autograd.grad(g.sum(), x)
    np.testing.assert_allclose(h.item(), -np.sin(0.3), rtol=1e-6)


def test_a_second_backward_needs_retain_graph() -> None:
    x = leafax.tensor([0.3], requires_grad=True)
    y = leafax.call_jax(jnp.sin, x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_decorator_keeps_name_and_doc() -> None:
    @leafax.jax_function
    def twice(x: jax.Array) -> jax.Array:
        """Double."""
        return 2 * x

    assert twice.__name__ == "twice" and twice.__doc__ == "Double."
    y = twice(leafax.ones(2).requires_grad_())
    assert y.tolist() == [2.0, 2.0]
    assert type(y.grad_fn).__name__ == "TwiceBackward"


def test_a_function_is_compiled_whole_at_once() -> None:
    def fn(x: jax.Array) -> jax.Array:
        return jnp.cosh(x) * 3

    leafax.explain(clear=True)
    for _ in range(2):
        leafax.call_jax(fn, leafax.tensor([1.0, 2.0])).tolist()
    assert [run.how for run in leafax.explain()] == ["compiled", "cached"]


def test_what_a_function_does_not_read_has_no_gradient() -> None:
    """None, as PyTorch has it, and not zero: an optimizer's decay leaves it alone."""

    def fn(parameters: Any, x: Any) -> Any:
        used = jax.jit(lambda p: p["a"] * 2)(parameters)  # nested programs are looked into
        return (used * x).sum(), (parameters["b"] * x).sum()

    made = {n: leafax.ones(3, requires_grad=True) for n in ("a", "b", "c")}
    optimizer = leafax.optim.AdamW(list(made.values()), lr=0.1, weight_decay=0.5)
    for _ in range(2):
        optimizer.zero_grad()
        first, _second = leafax.call_jax(fn, made, leafax.ones(3))
        first.backward()
        optimizer.step()
    assert made["a"].grad.tolist() == [2.0] * 3
    assert made["b"].grad is None and made["c"].grad is None
    assert made["b"].tolist() == made["c"].tolist() == [1.0] * 3
    both = leafax.call_jax(fn, made, leafax.ones(3))
    first = both[0].item()  # the backward is in another program
    (both[0] + both[1]).backward()
    assert first and made["b"].grad.tolist() == [1.0] * 3 and made["c"].grad is None


def test_random_keys_go_in_and_a_new_one_compiles_nothing() -> None:
    def noise(key: jax.Array, x: jax.Array) -> jax.Array:
        return x + jax.random.normal(key, x.shape)

    zeros = leafax.tensor([0.0, 0.0, 0.0])
    leafax.call_jax(noise, jax.random.key(9), zeros).tolist()
    leafax.explain(clear=True)
    for seed in range(3):
        got = leafax.call_jax(noise, jax.random.key(seed), zeros)
        want = noise(jax.random.key(seed), jnp.zeros(3))
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)
    assert leafax.explain().compiles == 0
    each = jax.vmap(noise, (0, None))
    keys = jax.random.split(jax.random.key(0, impl="rbg"), 2)
    got = leafax.call_jax(each, {"k": keys}["k"], zeros)
    np.testing.assert_allclose(got.numpy(), each(keys, jnp.zeros(3)), rtol=1e-6)
    with pytest.raises(TypeError, match="`split` returns a random key, which no tensor can hold"):
        leafax.call_jax(jax.random.split, jax.random.key(0))


def test_a_tensor_that_is_not_an_argument_is_an_error() -> None:
    class Batch:
        def __init__(self, x: Any) -> None:
            self.x = x

    def times(x: Any, batch: Batch) -> Any:
        return x * batch.x

    def read(x: Any, batch: Batch) -> Any:
        return x * batch.x.jax()

    captured = leafax.tensor([1.0, 2.0], requires_grad=True)
    for fn, tensor in ((times, captured), (times, captured * 2), (read, captured * 2)):
        with pytest.raises(
            RuntimeError, match=f"`{fn.__name__}` uses a tensor that is not one of its arguments"
        ):
            leafax.call_jax(fn, leafax.ones(2), Batch(tensor))
    assert leafax.call_jax(jnp.sin, captured).shape == (2,)
    assert jnp.asarray(captured.detach()).sum() == 3.0  # outside of an op it is converted


def test_what_jax_cannot_look_into_and_has_no_hash_is_named() -> None:
    class Batch(dict[str, Any]):
        pass

    with pytest.raises(TypeError, match="`first` got a `Batch`, which JAX does not know how to"):
        leafax.call_jax(first, Batch(x=leafax.ones(1)))


def first(batch: Any) -> Any:
    return batch["x"]


def test_ops_of_leafax_inside_and_arrays_outside_are_named() -> None:
    def relu(x: Any) -> Any:
        return leafax.nn.functional.relu(x)

    with pytest.raises(
        TypeError,
        match=r"relu\(\) of leafax is called inside the JAX function `relu`, which computes with "
        r"arrays: use JAX's own functions there, `jax.nn` or `jax.numpy`",
    ):
        leafax.call_jax(relu, leafax.ones(2))
    with pytest.raises(TypeError, match=r"relu\(\) takes tensors, got an array of JAX: `leafax.as"):
        relu(jnp.ones(2))
    assert relu(leafax.as_tensor(jnp.ones(2))).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("asked", [False, True])
def test_a_function_is_traced_once_for_arrays_of_some_shapes(
    asked: bool, request: pytest.FixtureRequest
) -> None:
    runs = []
    if asked:  # from then on products in functions of JAX are as exact
        leafax.set_float32_matmul_precision("highest")
        request.addfinalizer(_float32_precision.forget)

    def fn(w: Any, x: Any) -> Any:
        runs.append(x.shape)
        return {"y": jnp.tanh(x @ w), "none": None}

    w = leafax.ones(3, 3, requires_grad=True)
    assert leafax.eval_shape(fn, w, leafax.ones(2, 3))["y"].shape == (2, 3)
    optimizer = leafax.optim.SGD([w], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        leafax.call_jax(fn, w, leafax.ones(2, 3))["y"].sum().backward()
        optimizer.step()
    assert runs == [(2, 3)]
    wanted = jax.grad(lambda w: jnp.tanh(jnp.ones((2, 3)) @ w).sum())
    close = jnp.ones((3, 3))
    for _ in range(3):
        close = close - 0.1 * wanted(close)
    np.testing.assert_allclose(w.detach().numpy(), close, rtol=1e-5)
    leafax.call_jax(fn, w, leafax.ones(4, 3))
    assert runs == [(2, 3), (4, 3)]


def test_what_comes_out_may_depend_on_the_shapes() -> None:
    def fn(x: Any) -> Any:
        return (x, 2 * x) if x.shape[0] == 2 else {"x": x}

    for n in (2, 3, 2, 3):
        out = leafax.call_jax(fn, leafax.ones(n))
        assert isinstance(out, tuple if n == 2 else dict)


def test_eval_shape_records_nothing() -> None:
    leafax.synchronize()
    leafax.explain(clear=True)
    x = leafax.ones(2, 3, dtype=leafax.float64) * 2
    out = leafax.eval_shape(lambda x, scale: x * scale, x, scale=2.0)
    assert (out.shape, out.dtype) == ((2, 3), np.float32)
    with pytest.raises(TypeError, match="dot_general requires contracting dimensions"):
        leafax.eval_shape(jnp.dot, x, x)
    assert len(leafax.explain()) == 0
