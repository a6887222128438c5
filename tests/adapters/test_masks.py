"""Masks over pytrees: which leaves they select, and that the rest costs no backward work."""

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import flax.linen as linen
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from flax.core import freeze
from helpers.cheap_programs import OPTIMIZED
from jax.extend.core import Jaxpr, jaxprs_in_params

from leafax.functional import grad, invert, merge, partition, paths, select, tag, value_and_grad

pytestmark = pytest.mark.usefixtures("strict_promotion")


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Attention:
    query: Any
    value: Any


def parameters(depth: int = 3) -> dict[str, Any]:
    """A backbone of `depth` layers and a head, 8 wide."""
    rng = np.random.default_rng(0)

    def layer() -> dict[str, jax.Array]:
        kernel = rng.normal(size=(8, 8)) / 3
        return {"kernel": jnp.asarray(kernel, "float32"), "bias": jnp.full(8, 0.1, "float32")}

    return {"backbone": [layer() for _ in range(depth)], "head": layer()}


def loss(params: dict[str, Any], x: jax.Array) -> Any:
    for i, layer in enumerate(params["backbone"]):
        x = tag(f"h{i}", jnp.tanh(x @ layer["kernel"] + layer["bias"]))
    out = x @ params["head"]["kernel"] + params["head"]["bias"]
    return (out**2).mean()


X = jnp.asarray(np.random.default_rng(1).normal(size=(4, 8)), "float32")


def assert_same_structure(a: Any, b: Any) -> None:
    ours: Any = jax.tree.structure(a)
    assert ours == jax.tree.structure(b)


def chosen(tree: Any, what: Any) -> list[str]:
    mask = select(tree, what)
    assert_same_structure(mask, tree)
    return [path for path, yes in zip(paths(tree), jax.tree.leaves(mask), strict=True) if yes]


def count(jaxpr: Jaxpr, name: str) -> int:
    """Count the occurrences of a primitive, inner programs included."""
    found = 0
    for eqn in jaxpr.eqns:
        found += eqn.primitive.name == name
        found += sum(count(inner, name) for inner in jaxprs_in_params(eqn.params))
    return found


def assert_trees_close(a: Any, b: Any, rtol: float = 1e-6, atol: float = 0.0) -> None:
    assert_same_structure(a, b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=rtol, atol=atol)


# --- paths ---


def test_paths_of_containers() -> None:
    tree = {"a": [1.0, (2.0, 3.0)], "b": Attention(query=4.0, value={"w": 5.0}), 7: 6.0}
    with pytest.raises(ValueError):  # JAX sorts dict keys: no mix of str and int
        paths(tree)
    del tree[7]
    assert paths(tree) == ["a.0", "a.1.0", "a.1.1", "b.query", "b.value.w"]
    assert paths(1.0) == [""]
    assert paths({}) == []
    assert paths({"a": None, "b": 1.0}) == ["b"]


def test_paths_leave_out_boxes_but_not_attributes_called_value() -> None:
    assert paths(Attention(query=1.0, value=2.0)) == ["query", "value"]
    assert paths({"layer": Attention(query=None, value=2.0)}) == ["layer"]
    assert paths({"w": linen.Partitioned(jnp.ones(2), names=("x",))}) == ["w"]


class Net(nnx.Module):
    def __init__(self) -> None:
        rngs = nnx.Rngs(0)
        self.backbone = nnx.List([nnx.Linear(8, 8, rngs=rngs), nnx.Linear(8, 8, rngs=rngs)])
        self.head = nnx.Linear(8, 1, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        for layer in self.backbone:
            x = jnp.tanh(layer(x))
        return self.head(x)


def test_nnx_state() -> None:
    state = nnx.state(Net(), nnx.Param)
    assert paths(state) == [
        "backbone.0.bias", "backbone.0.kernel", "backbone.1.bias", "backbone.1.kernel",
        "head.bias", "head.kernel",
    ]  # fmt: skip
    assert chosen(state, "**.bias") == ["backbone.0.bias", "backbone.1.bias", "head.bias"]
    selected, rest = partition(state, "head")
    assert paths(selected) == ["head.bias", "head.kernel"]
    assert_trees_close(merge(selected, rest), state)


def test_nnx_gradients() -> None:
    graph, state = nnx.split(Net(), nnx.Param)

    def mean(state: Any) -> Any:
        return nnx.merge(graph, state)(X).mean()

    gradients = jax.jit(grad(mean, "head"))(state)
    full = jax.grad(mean)(state)
    assert paths(gradients) == ["head.bias", "head.kernel"]
    assert_trees_close(gradients, partition(full, "head")[0])


def test_linen_variables() -> None:
    dense = linen.Sequential([linen.Dense(3), linen.Dense(2)])
    variables = dense.init(jax.random.key(0), X)
    assert chosen(variables, "params.layers_1.**") == [
        "params.layers_1.bias", "params.layers_1.kernel"
    ]  # fmt: skip
    assert chosen(freeze(variables["params"]), "*.bias") == ["layers_0.bias", "layers_1.bias"]


# --- select ---

TREE = {
    "backbone": {"conv1": {"kernel": 1.0, "bias": 2.0}, "stem": 3.0},
    "backbone2": {"conv1": {"kernel": 4.0}},
    "bias": 5.0,
    "head": {"bias": 6.0},
}


def _id(x: Any) -> str | None:
    return None if callable(x) or isinstance(x, set) else str(x)[:40]  # equal in every process


GLOBS: list[tuple[Any, str]] = [
    ("backbone", "backbone.conv1.bias backbone.conv1.kernel backbone.stem"),
    ("backbone.*", "backbone.conv1.bias backbone.conv1.kernel backbone.stem"),
    ("backbone.**", "backbone.conv1.bias backbone.conv1.kernel backbone.stem"),
    ("backbone*", "backbone.conv1.bias backbone.conv1.kernel backbone.stem backbone2.conv1.kernel"),
    ("**.bias", "backbone.conv1.bias bias head.bias"),
    ("*.bias", "head.bias"),
    ("**.conv1", "backbone.conv1.bias backbone.conv1.kernel backbone2.conv1.kernel"),
    ("*.conv1.kernel", "backbone.conv1.kernel backbone2.conv1.kernel"),
    ("backbone?.**.kernel", "backbone2.conv1.kernel"),
    ("**.conv[0-9].b*", "backbone.conv1.bias"),
    ("**.conv[!1]*", ""),
    ("head.**.bias", "head.bias"),
    ("bias.**", "bias"),
    ("**.stem.**", "backbone.stem"),
    ("**.conv1.**.bias", "backbone.conv1.bias"),
    (["head", "bias"], "bias head.bias"),
    ({"head", "bias"}, "bias head.bias"),
    (re.compile("bias$"), "backbone.conv1.bias bias head.bias"),
    (re.compile(r"^backbone\."), "backbone.conv1.bias backbone.conv1.kernel backbone.stem"),
    ((re.compile("stem"), "head.*"), "backbone.stem head.bias"),
    (lambda path, leaf: leaf > 4 and "." in path, "head.bias"),
    (lambda path, leaf: np.bool_(path == "bias"), "bias"),
    ({"backbone": {"conv1": True, "stem": False}, "backbone2": False, "bias": True, "head": False},
     "backbone.conv1.bias backbone.conv1.kernel bias"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "expected"), GLOBS, ids=_id)
def test_select(what: Any, expected: str) -> None:
    if expected:
        assert chosen(TREE, what) == expected.split()
        assert chosen(TREE, select(TREE, what)) == expected.split()
    else:
        with pytest.raises(ValueError, match="matches none"):
            select(TREE, what)


@pytest.mark.parametrize("what", ["**", True, re.compile("")])
def test_select_all(what: Any) -> None:
    assert chosen(TREE, what) == paths(TREE)
    assert select(1.0, what) is True


def test_flat_dicts_with_dotted_keys_select_like_nested_ones() -> None:
    flat = dict(zip(paths(TREE), jax.tree.leaves(TREE), strict=True))
    for what, expected in GLOBS:
        if isinstance(what, str) and expected:
            assert chosen(flat, what) == expected.split()


def test_prefix_of_other_mapping_type_and_order() -> None:
    state = nnx.state(Net(), nnx.Param)
    mask = nnx.State({"head": True, "backbone": False})
    assert chosen(state, mask) == ["head.bias", "head.kernel"]


def test_invert() -> None:
    mask = select(TREE, "backbone")
    assert chosen(TREE, invert(mask)) == [p for p in paths(TREE) if p not in chosen(TREE, mask)]


MESSAGES: list[tuple[Any, type[Exception], str]] = [
    ("backbon.conv1", ValueError,
     "pattern `backbon.conv1` matches none of the 6 paths; the nearest are `backbone.conv1`, "
     "`backbone2.conv1`, `backbone.conv1.bias`. `leafax.functional.paths(tree)` lists all; `*` "
     "stays within one name, `**` crosses dots"),
    (["head", "hed"], ValueError,
     "pattern `hed` matches none of the 6 paths; the nearest are `head`"),
    (re.compile("^conv"), ValueError, "pattern `^conv` matches none of the 6 paths"),
    ("", ValueError, "pattern `` matches none"),
    (lambda path, leaf: False, ValueError,
     "the predicate selects none of the 6 leaves. `leafax.functional.paths(tree)` lists the paths"),
    (lambda path, leaf: leaf, TypeError,
     "the predicate's result at `backbone.conv1.bias` is 2.0, not a bool"),
    ({"backbone": 1, "backbone2": True, "bias": True, "head": True}, TypeError,
     "the mask at `backbone` is 1, not a bool. A mask is static: True (trainable) or False"),
    (0, TypeError, "the mask is 0, not a bool"),
    ({"backbone": True}, ValueError, "the mask does not fit the tree: "),
    ([True, False], ValueError, "`leafax.functional.select(tree, patterns)` makes one"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "error", "message"), MESSAGES, ids=_id)
def test_select_messages(what: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        select(TREE, what)


def test_select_in_an_empty_tree() -> None:
    with pytest.raises(ValueError, match="pattern `head` matches nothing: the tree has no leaves"):
        select({}, "head")


# --- partition and merge ---


@pytest.mark.parametrize("what", [what for what, expected in GLOBS if expected], ids=_id)
def test_merge_inverts_partition(what: Any) -> None:
    selected, rest = partition(TREE, what)
    assert paths(selected) == chosen(TREE, what)
    assert sorted(paths(selected) + paths(rest)) == sorted(paths(TREE))
    assert merge(selected, rest) == TREE
    assert merge(rest, selected) == TREE


def test_none_in_the_tree_stays() -> None:
    tree = {"a": 1.0, "b": None, "c": 2.0}
    assert merge(*partition(tree, "a")) == tree


def test_merge_messages() -> None:
    with pytest.raises(ValueError, match=r"both trees have a leaf at `a\.0`: `merge` never overwr"):
        merge({"a": [1.0], "b": None}, {"a": [2.0], "b": 1.0})
    with pytest.raises(ValueError, match="takes the two halves of one tree, as `partition` retur"):
        merge({"a": 1.0}, {"b": 1.0})


# --- gradients ---


@pytest.mark.parametrize("mask", ["head", "**.bias", "backbone.1", True, ["backbone.0", "head.*"]])
@pytest.mark.parametrize("jit", [False, True])
def test_gradients_equal_those_of_jax(mask: Any, jit: bool) -> None:
    params = parameters()
    fn = value_and_grad(loss, mask)
    value, gradients = (jax.jit(fn) if jit else fn)(params, X)
    expected, full = jax.value_and_grad(loss)(params, X)
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    assert_trees_close(gradients, partition(full, mask)[0], rtol=1e-5, atol=1e-8)
    assert_trees_close(grad(loss, mask)(params, X), gradients, rtol=1e-5, atol=1e-8)


def test_excluded_parameters_cost_no_backward_work() -> None:
    params = parameters(depth=3)

    def dots(fn: Callable[..., Any]) -> int:
        return count(jax.make_jaxpr(fn)(params, X).jaxpr, "dot_general")

    assert dots(loss) == 4
    # Forward 4, and the head's kernel.
    assert dots(grad(loss, "head")) == 5
    assert dots(grad(loss, "head.bias")) == 4
    # Forward 4, kernels of the last layer and the head, and the cotangent between them.
    assert dots(grad(loss, ["backbone.2", "head"])) == 7
    # A frozen layer between trainable ones passes the cotangent on, no more.
    assert dots(grad(loss, ["backbone.1", "head"])) == 4 + 2 + 2
    assert dots(grad(loss, True)) == 4 + 4 + 3


def test_compiled_step_equals_one_that_differentiates_the_head_alone() -> None:
    params = parameters(depth=6)

    def by_hand(params: Any, x: jax.Array) -> Any:
        def of_head(head: Any) -> Any:
            return loss({"backbone": params["backbone"], "head": head}, x)

        return jax.value_and_grad(of_head)(params["head"])

    def cost(fn: Callable[..., Any]) -> tuple[float, int]:
        compiled = jax.jit(fn).lower(params, X).compile(OPTIMIZED)
        memory = compiled.memory_analysis()
        assert memory is not None
        analysis: Any = compiled.cost_analysis()
        return analysis["flops"], memory.temp_size_in_bytes

    assert cost(value_and_grad(loss, "head")) == cost(by_hand)


def test_aux_argnum_and_keywords() -> None:
    def fn(x: jax.Array, params: dict[str, jax.Array], *, scale: float) -> Any:
        total = (params["a"] * params["b"] * x).sum() * scale
        return total, {"total": total}

    params = {"a": jnp.float32(2), "b": jnp.float32(3)}
    for argnum in (1, -1):
        (value, aux), gradients = value_and_grad(fn, "a", argnum=argnum, has_aux=True)(
            jnp.ones(2), params, scale=10.0
        )
        assert value == aux["total"] == 120
        assert gradients == {"a": 60, "b": None}
        again, aux = grad(fn, "a", argnum=argnum, has_aux=True)(jnp.ones(2), params, scale=10.0)
        assert again == gradients and aux["total"] == 120


def test_integer_leaves_are_left_out() -> None:
    params = {"steps": jnp.int32(3), "w": jnp.float32(2)}

    def fn(params: Any) -> Any:
        return params["w"] ** 2 * params["steps"].astype("float32")

    assert grad(fn, "w")(params) == {"steps": None, "w": 12}
    with pytest.raises(TypeError, match="the mask selects `steps`, which has dtype int32: only"):
        grad(fn)(params)


def test_complex_leaves() -> None:
    def fn(params: Any) -> Any:
        return jnp.abs(params["z"]) ** 2

    params = {"z": jnp.complex64(1 + 2j)}
    np.testing.assert_allclose(grad(fn)(params)["z"], jax.grad(fn)(params)["z"])


def test_gradient_messages() -> None:
    with pytest.raises(ValueError, match=r"selects no leaf.*`leafax\.functional\.invert\(mask\)`"):
        grad(loss, False)(parameters(), X)
    with pytest.raises(ValueError, match="pattern `heads` matches none of the 8 paths"):
        grad(loss, "heads")(parameters(), X)
    with pytest.raises(ValueError, match="argument 2 holds the parameters, but 2 positional"):
        grad(loss, argnum=2)(parameters(), X)
    with pytest.raises(TypeError, match=r"sequence of names: write `wrt=\('h1',\)`"):
        grad(loss, wrt="h1")


def test_gradients_train_with_optax() -> None:
    params = parameters()
    trainable, frozen = partition(params, "head")
    optimizer = optax.adamw(1e-2)
    state = optimizer.init(trainable)
    assert sum(x.size for x in jax.tree.leaves(state)) == 2 * 72 + 1

    traces = 0

    @jax.jit
    def step(trainable: Any, state: Any) -> Any:
        nonlocal traces
        traces += 1
        value, gradients = value_and_grad(loss, "head")(merge(trainable, frozen), X)
        with jax.numpy_dtype_promotion("standard"):  # optax needs it, leafax does not
            updates, state = optimizer.update(gradients, state, trainable)
        return optax.apply_updates(trainable, updates), state, value

    values = []
    for _ in range(20):
        trainable, state, value = step(trainable, state)
        values.append(float(value))
    assert values[-1] < 0.5 * values[0]
    assert traces == 1


# --- intermediates ---


def test_tag_is_an_identity() -> None:
    x = jnp.array([-0.0, jnp.nan, 1.0])
    assert tag("x", x) is x
    doubled = jax.jit(lambda x: tag("x", x) * 2)(X)
    np.testing.assert_array_equal(doubled, X * 2)
    tangents = jax.jvp(lambda x: tag("x", x) ** 2, (X,), (X,))
    np.testing.assert_array_equal(tangents[1], 2 * X * X)
    np.testing.assert_array_equal(jax.vmap(lambda row: tag("x", row))(X), X)
    np.testing.assert_array_equal(jax.grad(lambda x: tag("x", x).sum())(X), jnp.ones_like(X))


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("mask", ["head", True, False])
def test_gradients_of_intermediates(mask: Any, jit: bool) -> None:
    params = parameters()

    def from_h1(h1: jax.Array) -> Any:
        return loss({"backbone": params["backbone"][2:], "head": params["head"]}, h1)

    h1 = X
    for layer in params["backbone"][:2]:
        h1 = jnp.tanh(h1 @ layer["kernel"] + layer["bias"])
    fn = value_and_grad(loss, mask, wrt=("h1", "h0"))
    value, (gradients, named) = (jax.jit(fn) if jit else fn)(params, X)
    np.testing.assert_allclose(value, loss(params, X), rtol=1e-6)
    assert set(named) == {"h0", "h1"}
    np.testing.assert_allclose(named["h1"], jax.grad(from_h1)(h1), rtol=1e-5, atol=1e-8)
    expected = partition(jax.grad(loss)(params, X), mask)[0]
    assert_trees_close(gradients, expected, rtol=1e-5, atol=1e-8)


def test_an_intermediate_costs_only_the_backward_work_above_it() -> None:
    params = parameters(depth=3)

    def dots(**options: Any) -> int:
        jaxpr = jax.make_jaxpr(value_and_grad(loss, "head", **options))(params, X).jaxpr
        return count(jaxpr, "dot_general")

    assert dots() == 5
    assert dots(wrt=("h2",)) == 6
    assert dots(wrt=("h1",)) == 7


def test_intermediates_in_jit_and_checkpoint() -> None:
    @jax.jit
    def inner(x: jax.Array) -> jax.Array:
        return jnp.sin(tag("inside", x * 2))

    def fn(x: jax.Array, wrap: Callable[..., Any]) -> Any:
        return (wrap(inner)(x) ** 2).sum()

    expected = np.sin(2 * X) * np.cos(2 * X) * 2
    inner(X)  # JAX has its trace in the cache now
    for wrap in (lambda f: f, jax.jit, jax.checkpoint, lambda f: jax.checkpoint(jax.jit(f))):
        value, (gradients, named) = value_and_grad(fn, wrt=("inside",))(X, wrap)
        np.testing.assert_allclose(named["inside"], expected, rtol=1e-5)
        np.testing.assert_allclose(gradients, 2 * expected, rtol=1e-5)


def test_checkpoint_still_recomputes() -> None:
    def fn(x: jax.Array) -> Any:
        return jax.checkpoint(lambda x: jnp.sin(tag("inside", jnp.sin(x))))(x).sum()

    jaxpr = jax.make_jaxpr(grad(fn, wrt=("inside",)))(X).jaxpr
    assert count(jaxpr, "sin") > 2


def test_intermediates_under_vmap_and_custom_rules_elsewhere() -> None:
    def fn(w: jax.Array) -> Any:
        h = jax.vmap(lambda row: tag("h", row * w))(X)
        return jax.nn.relu(jax.nn.silu(h)).sum() + optax.safe_norm(h, 1e-3)

    _, (_, named) = value_and_grad(fn, wrt=("h",))(jnp.float32(2))
    direct = jax.grad(lambda h: jax.nn.relu(jax.nn.silu(h)).sum() + optax.safe_norm(h, 1e-3))
    np.testing.assert_allclose(named["h"], direct(X * 2), rtol=1e-5)


def test_second_derivative_through_an_intermediate() -> None:
    def of_w(w: jax.Array) -> Any:
        named = grad(lambda w: tag("h", w**2) ** 3, wrt=("h",))(w)[1]
        return named["h"]  # 3 h**2 = 3 w**4

    np.testing.assert_allclose(jax.grad(of_w)(jnp.float32(2)), 12 * 2**3, rtol=1e-6)
    _, forward = jax.jvp(of_w, (jnp.float32(2),), (jnp.float32(1),))
    np.testing.assert_allclose(forward, 96, rtol=1e-6)


def test_aux_and_unused_intermediate() -> None:
    def fn(w: jax.Array) -> Any:
        h = tag("h", w * 2)
        return w**2, {"h": h, "none": None}

    (_, aux), (_, named) = value_and_grad(fn, has_aux=True, wrt=("h",))(jnp.float32(3))
    assert named == {"h": 0} and aux == {"h": 6, "none": None}


def test_named_gradients_are_traced_once() -> None:
    traces = 0

    @jax.jit
    def step(params: Any, x: jax.Array) -> Any:
        nonlocal traces
        traces += 1
        return value_and_grad(loss, "head", wrt=("h1",))(params, x)

    for _ in range(3):
        step(parameters(), X)
    assert traces == 1


def looped(x: jax.Array) -> Any:
    return jax.lax.scan(lambda h, _: (tag("step", h * 2), None), x, length=3)[0].sum()


def ruled(x: jax.Array) -> Any:
    rule = jax.custom_jvp(lambda x: tag("h", x))
    rule.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
    return rule(x).sum()


def twice(x: jax.Array) -> Any:
    return tag("h", tag("h", x) * 2).sum()


def rounded(x: jax.Array) -> Any:
    tag("count", (x > 0).sum())
    return x.sum()


@pytest.mark.parametrize(
    ("fn", "name", "error", "message"),
    [
        (twice, "hh", ValueError, "no intermediate of the function is tagged `hh`; the nearest "
         "tags are `h`. Name one with `x = leafax.functional.tag('hh', x)`"),
        (jnp.sum, "h", ValueError, "tagged `h`; it has no tags."),
        (twice, "h", ValueError, "2 intermediates are tagged `h`: give each its own name"),
        (looped, "step", ValueError, "`step` is tagged inside `scan`, which is differentiated as a "
         "whole: return the value from there and tag it outside"),
        (ruled, "h", ValueError, "`h` is tagged inside `custom_jvp_call`, which is differentiated"),
        (rounded, "count", TypeError, "`count` has dtype int32: only floating point and complex"),
    ],
)  # fmt: skip
def test_intermediate_messages(
    fn: Callable[..., Any], name: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        value_and_grad(fn, wrt=(name,))(X)


def test_tag_message() -> None:
    with pytest.raises(TypeError, match="`tag` of `h` takes one array, got dict: tag each of its"):
        tag("h", {"a": X})
