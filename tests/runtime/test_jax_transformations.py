"""leafax inside JAX's transformations, and its tensors as arguments of JAX's functions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import leafax as lx
from leafax._autograd.memo import replay_backward

W = np.array([1.0, 2.0, 3.0], np.float32)
X = jnp.array([0.5, 1.5, 2.5])


@pytest.fixture
def w():
    """A tensor that is still pending when JAX begins to trace."""
    return lx.tensor(W) * 2


def weighted(w):
    return lambda x: (lx.as_tensor(x) * w).sum().jax()


def test_jit_computes_with_its_values_and_leaves_the_tensor_outside_as_it_was(w):
    f = jax.jit(weighted(w))
    np.testing.assert_allclose(f(X), (2 * W * X).sum(), rtol=1e-6)
    np.testing.assert_allclose(f(X + 1), (2 * W * (X + 1)).sum(), rtol=1e-6)
    assert w.tolist() == [2.0, 4.0, 6.0]
    assert (w + 1).tolist() == [3.0, 5.0, 7.0]


def test_grad_differentiates_what_leafax_computes(w):
    np.testing.assert_allclose(jax.grad(weighted(w))(X), 2 * W, rtol=1e-6)
    hessian = jax.hessian(lambda x: (lx.as_tensor(x) ** 3).sum().jax())(X)
    np.testing.assert_allclose(hessian, np.diag(6 * np.asarray(X)), rtol=1e-5)
    assert w.tolist() == [2.0, 4.0, 6.0]


def test_vmap_maps_and_nests_with_jit_and_grad(w):
    xs = jnp.stack([X, X + 1])
    expected = [(2 * W * x).sum() for x in np.asarray(xs)]
    np.testing.assert_allclose(jax.vmap(weighted(w))(xs), expected, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.vmap(weighted(w)))(xs), expected, rtol=1e-6)
    rows = jax.jit(jax.vmap(jax.grad(weighted(w))))(xs)
    np.testing.assert_allclose(rows, [2 * W, 2 * W], rtol=1e-6)
    assert w.tolist() == [2.0, 4.0, 6.0]


def test_a_function_that_is_jitted_inside_of_grad_reads_both_levels(w):
    def f(x):
        t = lx.as_tensor(x) * 2
        return jax.jit(lambda y: (lx.as_tensor(y) * t * w).sum().jax())(x)

    np.testing.assert_allclose(jax.grad(f)(X), 8 * W * X, rtol=1e-6)


def test_scan_and_cond_trace_it_as_well(w):
    def body(carry, x):
        return (lx.as_tensor(carry) + lx.as_tensor(x) * w.sum()).jax(), carry

    total, _ = jax.lax.scan(body, jnp.float32(0), X)
    np.testing.assert_allclose(total, 12 * X.sum(), rtol=1e-6)


def test_what_is_created_inside_may_be_written_to(w):
    @jax.jit
    def f(x):
        total, other = lx.zeros(3), lx.tensor([1.0, 1.0, 1.0])
        row = lx.as_tensor(x)
        for _ in range(2):
            total += row * w
            other[0] = total[0]
        view = total.view(3, 1)
        view.mul_(2)
        return total.jax(), other.jax()

    total, other = f(X)
    np.testing.assert_allclose(total, 8 * W * X, rtol=1e-6)
    np.testing.assert_allclose(other, [2.0, 1.0, 1.0], rtol=1e-6)


def test_leafax_gradients_are_taken_inside(w):
    @jax.jit
    def f(x):
        t = lx.as_tensor(x).requires_grad_()
        ((t * w) ** 2).sum().backward()
        (again,) = lx.autograd.grad((t**3).sum(), t)
        return t.grad.jax(), again.jax()

    first, second = f(X)
    np.testing.assert_allclose(first, 8 * W**2 * X, rtol=1e-6)
    np.testing.assert_allclose(second, 3 * X**2, rtol=1e-6)


def test_gradients_that_begin_inside_leave_no_tracer_behind(monkeypatch):
    monkeypatch.setattr(replay_backward, "_ones", {})  # as in a new process

    @jax.jit
    def f(x):
        t = lx.as_tensor(x).requires_grad_()
        t.sum().backward()
        return t.grad.jax()

    np.testing.assert_allclose(f(X), np.ones(3))
    outside = lx.ones(3, requires_grad=True)
    outside.sum().backward()
    assert outside.grad.tolist() == [1, 1, 1]


def test_integers_are_those_of_the_configuration():
    picked = jax.jit(lambda x: (lx.as_tensor(x).argmax() + 1).jax())(X)
    assert picked.dtype == jnp.int32 and picked == 3
    with pytest.raises(TypeError, match="float64 inside a JAX transformation"):
        jax.jit(lambda x: lx.as_tensor(x).double().sum().jax())(X)


def test_data_dependent_python_is_refused_at_its_line(w):
    with pytest.raises(RuntimeError, match=r"item\(\) asks for a number inside `jax.jit`"):
        jax.jit(lambda x: lx.as_tensor(x).sum().item())(X)
    with pytest.raises(RuntimeError, match=r"bool\(\) asks for a number inside `jax.vmap`"):
        jax.vmap(lambda x: bool(lx.as_tensor(x).sum() > 0))(jnp.stack([X, X]))
    assert jax.jit(lambda x: x * w[0].item())(X).tolist() == [1.0, 3.0, 5.0]
    assert w.tolist() == [2.0, 4.0, 6.0]


def test_a_tensor_from_outside_is_not_written_to(w):
    def f(x):
        w.add_(lx.as_tensor(x))
        return w.jax()

    with pytest.raises(RuntimeError, match="a tensor from outside is written to inside `jax.jit`"):
        jax.jit(f)(X)
    assert w.tolist() == [2.0, 4.0, 6.0]


def test_no_gradient_is_left_outside():
    p = lx.tensor(W, requires_grad=True)
    scaled = p * 2
    (p * 3).sum().backward()

    @jax.jit
    def f(x):
        (lx.as_tensor(x) * p).sum().backward()
        return x

    with pytest.raises(RuntimeError, match=r"backward\(\) inside `jax.jit` would leave a gradient"):
        f(X)
    assert p.grad.tolist() == [3.0, 3.0, 3.0]
    given = jax.jit(lambda x: lx.autograd.grad((lx.as_tensor(x) * p).sum(), p)[0].jax())(X)
    np.testing.assert_allclose(given, X)
    scaled.sum().backward()
    assert p.grad.tolist() == [5.0, 5.0, 5.0]


def test_a_tensor_that_outlives_its_transformation_names_it(w):
    kept = []

    @jax.jit
    def f(x):
        kept.append(lx.as_tensor(x) * w)
        return x

    f(X)
    for use in (lambda t: t + 1, lambda t: t.tolist(), lambda t: t.jax(), lambda t: t[0] * 2, str):
        with pytest.raises(RuntimeError, match="computed inside `jax.jit`, which is over"):
            use(kept[0])
    assert (w + 1).tolist() == [3.0, 5.0, 7.0]


def test_random_numbers_are_refused_where_they_would_be_constants():
    lx.manual_seed(0)
    with pytest.raises(RuntimeError, match="would be the same in all calls"):
        jax.jit(lambda x: lx.randn(3).jax() + x)(X)
    with pytest.raises(RuntimeError, match="would be the same for all examples"):
        jax.vmap(lambda x: x + lx.rand(()).jax())(X)
    drawn = jax.grad(lambda x: (lx.as_tensor(x) * lx.randn(3)).sum().jax())(X)
    lx.manual_seed(0)
    assert lx.randn(3).tolist() == np.asarray(drawn).tolist()
    assert lx.randn(3).tolist() != np.asarray(drawn).tolist()


def test_the_mode_outside_goes_on_after_one_that_was_left_inside(w):
    p = lx.tensor(W, requires_grad=True)
    with lx.no_grad():
        jax.jit(weighted(w))(X)
        assert not (p * 2).requires_grad
    assert (p * 2).requires_grad


def test_jax_functions_take_tensors(w):
    np.testing.assert_allclose(jnp.sin(w), np.sin(2 * W), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jnp.sin)(w + 0), np.sin(2 * W), rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(jnp.sin)(w), np.sin(2 * W), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda x: (x**2).sum())(w), 4 * W, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(lambda x: x + jnp.sin(w))(X), X + np.sin(2 * W), rtol=1e-6)
    assert isinstance(jax.device_put(w), jax.Array)
    assert jax.jit(lambda n: n + 1)(lx.arange(3)).dtype == jnp.int32


def test_jax_functions_refuse_tensors_whose_gradient_is_recorded():
    p = lx.tensor(W, requires_grad=True)
    for f in (jnp.sin, jax.jit(jnp.sin), jax.vmap(jnp.sin), jax.device_put):
        with pytest.raises(RuntimeError, match=r"leafax.call_jax\(f, t\)"):
            f(p)
        with lx.no_grad():
            f(p)


def test_labels_and_indices_of_64_bits_are_taken(w):
    rows, labels = lx.ones(3, 2), lx.tensor([0, 1])

    def f(x):
        scores = (lx.as_tensor(x) @ rows).expand(2, 2)
        return lx.nn.functional.cross_entropy(scores, labels).jax()

    np.testing.assert_allclose(jax.jit(f)(X), np.log(2), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(f)(X), np.zeros(3), atol=1e-6)
    picked = jax.jit(lambda x: lx.as_tensor(x).index_select(0, labels).jax())(X)
    np.testing.assert_allclose(picked, X[:2])


@pytest.mark.parametrize("write", ["element", "data", "view"])
def test_no_kind_of_write_reaches_outside(w, write):
    def f(x):
        t = lx.as_tensor(x)
        if write == "element":
            w[0] = t[0]
        elif write == "data":
            w.data = t
        else:
            w[1:].mul_(t[1:])
        return x

    with pytest.raises(RuntimeError, match="a tensor from outside is written to inside"):
        jax.jit(f)(X)
    assert w.tolist() == [2.0, 4.0, 6.0]


def test_a_gradient_is_not_assigned_from_inside():
    p = lx.tensor(W, requires_grad=True)

    def f(x):
        p.grad = lx.as_tensor(x)
        return x

    with pytest.raises(RuntimeError, match="would leave a gradient on a tensor from outside"):
        jax.jit(f)(X)
    assert p.grad is None


@pytest.mark.parametrize("at_rest", [False, True])
def test_views_of_what_is_outside_are_read_inside_and_outside(w, at_rest):
    if at_rest:
        lx.synchronize()
    before = w.view(3, 1)

    def f(x):
        inner, row = w[1:], before.squeeze(1)
        return (lx.as_tensor(x)[1:] * inner).sum().jax() + (row.view(-1)[:2] * 2).sum().jax()

    for _ in range(2):
        np.testing.assert_allclose(jax.jit(f)(X), 33.0, rtol=1e-6)
        assert w[1:].tolist() == [4.0, 6.0]
    w[0] = 5
    assert before.flatten().tolist() == [5.0, 4.0, 6.0]
