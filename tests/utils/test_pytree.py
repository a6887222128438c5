"""Trees as PyTorch has them: dicts keep their order, named tuples and deques are nodes."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest
import torch

import leafax

LIBS = [torch, leafax]
Pair = namedtuple("Pair", "second first")


def numbers(lib: Any, *shape: int) -> Any:
    return lib.arange(float(np.prod(shape))).reshape(shape) * 0.25 - 0.5


TREES: dict[str, Callable[[Any, Any], Any]] = {
    "dict": lambda a, b: {"z": a, "a": b},
    "nested": lambda a, b: {"z": [a, {"y": b, "b": a}], "a": (b,)},
    "OrderedDict": lambda a, b: OrderedDict(z=a, a=b),
    "defaultdict": lambda a, b: defaultdict(list, {"z": a, "a": b}),
    "namedtuple": lambda a, b: Pair(a, b),
    "deque": lambda a, b: deque([a, b], 3),
    "empty": lambda a, b: [a, (), {}, b],
}


@pytest.mark.parametrize("tree", TREES)
def test_leaves_and_structure(tree: str) -> None:
    theirs, ours = (lib.utils._pytree for lib in LIBS)
    x, y = TREES[tree](1, None), TREES[tree]("other", 2)
    leaves, spec = ours.tree_flatten(x)
    expected, reference = theirs.tree_flatten(x)
    assert leaves == expected == ours.tree_leaves(x)
    assert repr(spec) == repr(reference)
    assert spec.num_leaves == reference.num_leaves
    back = ours.tree_unflatten(leaves, spec)
    assert back == x and type(back) is type(x)
    assert spec == ours.tree_structure(y) and hash(spec) == hash(ours.tree_structure(y))
    assert spec != ours.tree_structure([x])
    assert ours.tree_map(lambda a, b: (a, b), x, y) == theirs.tree_map(lambda a, b: (a, b), x, y)
    assert ours.tree_any(lambda a: a is None, x) and not ours.tree_all(lambda a: a is None, x)
    assert ours.tree_map_only(int, float, x) == theirs.tree_map_only(int, float, x)


def test_registered_classes_and_what_jax_knows() -> None:
    ours = leafax.utils._pytree

    class Box:
        def __init__(self, held: Any, name: str) -> None:
            self.held, self.name = held, name

    with_name = (lambda b: ([b.held], b.name), lambda children, name: Box(*children, name))
    ours.register_pytree_node(Box, *with_name)
    doubled = ours.tree_map(lambda x: x * 2, {"b": Box(3, "three")})["b"]
    assert (doubled.held, doubled.name) == (6, "three")
    with pytest.raises(ValueError, match="is already registered as pytree node"):
        ours.register_pytree_node(Box, *with_name)

    @jax.tree_util.register_dataclass
    @__import__("dataclasses").dataclass
    class Point:
        x: Any
        y: Any

    gradient = leafax.func.grad(lambda p: (p.x * p.y).sum())(
        Point(leafax.ones(2), leafax.full((2,), 3.0))
    )
    assert isinstance(gradient, Point)
    assert gradient.x.tolist() == [3, 3] and gradient.y.tolist() == [1, 1]


def keys(tree: Any) -> Any:
    return [(k, keys(v)) for k, v in tree.items()] if isinstance(tree, dict) else None


ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "grad": lambda f, p: f.grad(lambda p: (p["z"] * p["a"]).sum())(p),
    "jacrev": lambda f, p: f.jacrev(lambda p: p["z"] * p["a"])(p),
    "jacfwd": lambda f, p: f.jacfwd(lambda p: {"q": p["z"], "b": p["a"]})(p),
    "vjp": lambda f, p: f.vjp(lambda p: p["z"] * p["a"], p)[1](p["z"])[0],
    "jvp": lambda f, p: f.jvp(lambda p: {"q": p["z"], "b": p["a"]}, (p,), (p,))[1],
    "linearize": lambda f, p: f.linearize(lambda p: {"q": p["z"], "b": p["a"]}, p)[1](p),
    "vmap": lambda f, p: f.vmap(lambda p: {"q": p["z"], "b": p["a"]})(p),
    "functionalize": lambda f, p: f.functionalize(lambda p: {"q": p["z"], "b": p["a"]})(p),
}


@pytest.mark.filterwarnings("ignore")  # of what torch itself does in forward mode
@pytest.mark.parametrize("transform", ORDERS)
def test_dicts_keep_their_order(transform: str) -> None:
    """Zipped with the parameters, gradients in another order would train the wrong ones."""
    expected, ours = (
        ORDERS[transform](lib.func, {"z": numbers(lib, 2), "a": numbers(lib, 2)}) for lib in LIBS
    )
    assert keys(ours) == keys(expected)


def outcome(call: Callable[[], Any]) -> Any:
    try:
        result = call()
    except Exception as e:
        return type(e), str(e)
    flat = leafax.utils._pytree.tree_leaves(result)
    return keys(result), [x.tolist() for x in flat]


CALLS: dict[str, Callable[[Any], Any]] = {
    "tangents in another order": lambda lib: lib.func.jvp(
        lambda p: p["z"] * p["a"],
        ({"z": numbers(lib, 2), "a": numbers(lib, 2)},),
        ({"a": numbers(lib, 2), "z": numbers(lib, 2)},),
    ),
    "in_dims": lambda lib: lib.vmap(lambda p: p["z"] * p["a"], in_dims=({"z": 0, "a": 1},))(
        {"z": numbers(lib, 2, 3), "a": numbers(lib, 3, 2)}
    ),
    "in_dims without a key": lambda lib: lib.vmap(lambda p: p["z"], in_dims=({"a": 1},))(
        {"z": numbers(lib, 2, 3), "a": numbers(lib, 3, 2)}
    ),
    "out_dims": lambda lib: lib.vmap(lambda x: {"x": x, "c": x}, out_dims={"x": 0, "c": 1})(
        numbers(lib, 2, 3)
    ),
    "out_dims as a prefix": lambda lib: lib.vmap(lambda x: (x, [x, x]), out_dims=(0, 1))(
        numbers(lib, 2, 3)
    ),
    "out_dims that do not fit": lambda lib: lib.vmap(lambda x: (x, [x]), out_dims=(0, (1,)))(
        numbers(lib, 2, 3)
    ),
    "cotangents in another order": lambda lib: lib.func.vjp(
        lambda x: {"z": x, "a": x * 2}, numbers(lib, 2)
    )[1]({"a": numbers(lib, 2), "z": numbers(lib, 2)}),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS)
def test_what_dicts_are_matched_with(call: str) -> None:
    expected, ours = (outcome(lambda lib=lib: CALLS[call](lib)) for lib in LIBS)
    assert ours == expected


def test_messages_are_torchs() -> None:
    spec = leafax.utils._pytree.tree_structure([1, 2])
    for arguments in ([1], spec), ([1, 2], None):
        given = list(arguments)
        with pytest.raises((ValueError, TypeError)) as ours:
            leafax.utils._pytree.tree_unflatten(*given)
        if given[1] is spec:
            given[1] = torch.utils._pytree.tree_structure([1, 2])
        with pytest.raises(ours.type) as theirs:
            torch.utils._pytree.tree_unflatten(*given)
        assert str(ours.value) == str(theirs.value).replace("torch", "leafax")


def classes(torch: Any, log: list[Any]) -> None:
    """Log the results of the examples of dataclasses and constants in PyTorch's docstrings."""
    tree = torch.utils._pytree

    @dataclass
    class Point:
        x: Any
        y: Any
        z: Any = None

    @dataclass(frozen=True)
    class Config:
        norm: str

    for names, dropped in ((["x"], None), (["x", "q"], ["z"]), (["x", "y"], ["z"]), (None, None)):
        register = partial(tree.register_dataclass, Point)
        log.append(raised(register, field_names=names, drop_field_names=dropped))
    log.append(raised(tree.register_dataclass, int))
    log.append(raised(tree.register_constant, type("Plain", (), {})))
    log.append(raised(tree.register_constant, unhashable()))
    tree.register_constant(Config)
    whole = {"p": Point(torch.tensor([1.0, 2.0]), torch.tensor(3.0)), "c": Config("l2")}
    log.append(repr(tree.tree_structure(whole)))
    log.append([tree.keystr(path) for path, _ in tree.tree_leaves_with_path(whole)])
    log.append(tree.tree_structure(whole) == tree.tree_structure(whole | {"c": Config("l1")}))
    slope = torch.func.grad(lambda t: t["p"].x.sum() * t["p"].y)(whole)
    log.append((slope["p"].x.tolist(), slope["p"].y.item(), slope["p"].z, slope["c"].norm))


def raised(call: Callable[..., None], *args: Any, **kwargs: Any) -> Any:
    try:
        call(*args, **kwargs)
    except Exception as e:
        return type(e), str(e)
    return "no error"


def unhashable() -> type:
    @dataclass
    class Mutable:
        x: int

    return Mutable


def test_sizes_are_nodes() -> None:
    for lib in LIBS:
        size, tree = lib.Size([3, 4]), lib.utils._pytree
        leaves, spec = tree.tree_flatten(size)
        assert leaves == [3, 4] and spec.type is lib.Size
        assert type(tree.tree_map(lambda n: n, size)) is tuple
        shape = lib.func.vmap(lambda x: x.shape, out_dims=None)(lib.ones(2, 3))
        assert type(shape) is tuple and shape == (3,)


def test_fields_are_told_in_the_order_of_torchs_set() -> None:
    """Many fields: a set made otherwise tells them in another order in one process of four."""
    fields = [(name, int) for name in "abcdefghijkl"]
    for names, dropped in ((["a", "z"], ["b", "c", "d", "e"]), (list("abcd"), ["e"]), (["q"], [])):
        ours, theirs = (
            raised(
                lib.utils._pytree.register_dataclass, make_dataclass("Wide", fields),
                field_names=names, drop_field_names=dropped,
            )
            for lib in LIBS
        )  # fmt: skip
        assert ours == theirs and theirs[0] is ValueError


@pytest.mark.filterwarnings("ignore")  # of what is registered anew
def test_dataclasses_and_constants() -> None:
    seen: list[list[Any]] = []
    for lib in LIBS:
        seen.append([])
        classes(lib, seen[-1])
    assert seen[1] == seen[0]


@pytest.mark.parametrize("lib", LIBS)
def test_names_that_packages_use(lib: Any) -> None:
    tree = lib.utils._pytree

    class Output(OrderedDict):  # type: ignore[type-arg]
        pass

    def flatten(x: Any) -> Any:
        return list(x.values()), list(x)

    def keyed(x: Any) -> Any:
        return [(tree.MappingKey(k), v) for k, v in x.items()], list(x)

    tree.register_pytree_node(
        Output, flatten, lambda xs, keys: Output(zip(keys, xs, strict=True)),
        serialized_type_name=f"{lib.__name__}.Output", flatten_with_keys_fn=keyed,
    )  # fmt: skip
    x = Output(a=1, b=[2, 3])
    assert [tree.keystr(p) for p, _ in tree.tree_flatten_with_path(x)[0]] == [
        "['a']", "['b'][0]", "['b'][1]",
    ]  # fmt: skip
    assert tree.SUPPORTED_NODES[Output].flatten_fn(x)[1] == ["a", "b"]
    assert type(tree.tree_map(lambda n: n + 1, x)) is Output
    assert tree._get_node_type(Pair(1, 2)) is namedtuple and tree._get_node_type([]) is list
    assert isinstance(tree.tree_structure(1), tree.LeafSpec)
    assert not isinstance(tree.tree_structure([1]), tree.LeafSpec)
    spec = tree.tree_structure({"a": [1, 2], "b": 3})
    assert tree._broadcast_to_and_flatten({"a": 5, "b": 6}, spec) == [5, 5, 6]
    assert tree._broadcast_to_and_flatten([1], spec) is None
    assert tree.treespec_pprint(spec) == "{'a': [*, *], 'b': *}" and spec.num_nodes == 5
    assert tree.treespec_dict(a=tree.treespec_tuple([tree.treespec_leaf()] * 2)).num_leaves == 2
    assert tree.arg_tree_leaves([1], a=(2, 3)) == [1, 2, 3]
    assert tree.tree_map(tree.map_only(int)(str), [1, 2.5]) == ["1", 2.5]
    assert tree.tree_map_only(lambda v: v > 1, str, [1, 2]) == [1, "2"]
    assert tree.is_namedtuple(Pair) and not tree.is_namedtuple_instance(Pair)
    assert tree.is_structseq(lib.max(lib.ones(2, 2), 0)) and not tree.is_structseq(Pair(1, 2))
    with pytest.warns(FutureWarning, match="Please use `torch.utils._pytree.register_pytree_node`"):
        tree._register_pytree_node(type("Other", (), {}), lambda x: ([], None), lambda xs, _: 0)


MISMATCHES: list[tuple[Any, Any]] = [
    ([1, 2], (1, 2)), ([1, 2], [1]), ({"a": 1}, {"b": 1}), ([1], 1), ({"a": 1, "b": 2}, [1, 2]),
    (Pair(1, 2), namedtuple("Other", "a b")(1, 2)), ({"a": 1}, OrderedDict(a=2)),
    (deque([1], 2), deque([1], 3)),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(MISMATCHES)))
def test_structures_that_do_not_agree(case: int) -> None:
    first, second = MISMATCHES[case]
    said = []
    for lib in LIBS:
        try:
            said.append(repr(lib.utils._pytree.tree_map(lambda a, b: (a, b), first, second)))
        except ValueError as error:
            said.append(str(error))
    assert said[0] == said[1]


def test_keys_must_be_told() -> None:
    class Box:
        pass

    for lib in LIBS:
        tree = lib.utils._pytree
        tree.register_pytree_node(Box, lambda x: ([1], None), lambda xs, _: Box())
        with pytest.raises(ValueError, match="Did not find a flatten_with_keys_fn for type"):
            tree.tree_leaves_with_path(Box())
