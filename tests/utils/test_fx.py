"""Graphs of modules: traced, printed, run, changed, copied and pickled as PyTorch's."""

from __future__ import annotations

import copy
import importlib
import math
import operator
import pickle
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import leafax

LIBS = [torch, leafax]
Pair = namedtuple("Pair", "first second")


def net(t: Any) -> Any:
    """Make a small network with parameters, buffers, constants and nested modules."""
    nn = t.nn

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.lin = nn.Linear(3, 3)
            self.scale = nn.Parameter(t.ones(3))
            self.register_buffer("shift", t.zeros(3))
            self.seq = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Dropout(0.5))

        def forward(self, x, flag=None):  # type: ignore[no-untyped-def]
            if flag is None:
                x = x + self.shift
            return self.seq(self.lin(x) * self.scale) @ self.lin.weight + t.ones(3)

    class Net(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.ModX = Block()
            self.layers = nn.ModuleList([Block(), Block()])
            self.bn = nn.BatchNorm1d(3)
            self.unused = nn.Linear(1, 1)

        def forward(self, x, n=2):  # type: ignore[no-untyped-def]
            for layer in self.layers:
                x = layer(x, flag=None)
            return self.bn(self.ModX(x, 1)).relu_()

    made = Net().eval()
    rng = np.random.default_rng(0)
    for p in made.parameters():
        p.data.copy_(t.from_numpy(rng.normal(size=tuple(p.shape)).astype(np.float32)))
    return made


def functions(t: Any) -> list[Callable[..., Any]]:
    F = t.nn.functional  # noqa: N806

    def arithmetic(x, y, k=2, *, w=3):  # type: ignore[no-untyped-def]
        z = t.relu(x + y) * 2 - x.sum(dim=0, keepdim=True) / k
        a, b = t.split(z, 1)
        z += a
        z = z.view(-1, 3) @ y.T
        q = math.sqrt(x.shape[0])
        return {"a": z[..., 1:], "b": [t.cat([z, z], 0), (-z, ~(z > 1))]}, q, 3 / z, 2**z, z // w

    def layers(x, y):  # type: ignore[no-untyped-def]
        z = F.softmax(F.relu(x), dim=-1) + F.dropout(x, training=False)
        z = F.batch_norm(z, y, y) + F.layer_norm(z, (3,)) + F.linear(z, y)
        z = F.gelu(F.conv2d(z, y)) + F.softplus(z)
        z = F.interpolate(z, scale_factor=2.0) + F.pad(z, (1, 1)) + F.silu(z, inplace=True)
        return F.cross_entropy(z, y), F.embedding(z, y), F.mse_loss(z, y), F.max_pool2d(z, 2)

    def methods(x):  # type: ignore[no-untyped-def]
        x = x.to(t.float64).to(dtype=t.int32).flatten(1).mean(0)
        return x.size(0), x.foo.bar, x.device, x.copy_(x), t.ones(2) + x, t.max(x, 0)[0], abs(x)

    def several(x):  # type: ignore[no-untyped-def]
        t._assert(x.shape[0] == 2, "two rows")
        return t.einsum("ij->i", x), t.norm(x), t.add(x, x, alpha=2), t.ops.aten.relu(x)

    def star(*a, **k):  # type: ignore[no-untyped-def]
        return a[0] + k["b"], Pair(a[1], 1), a[0](1)

    return [arithmetic, layers, methods, several, star]


@pytest.mark.parametrize("which", range(5))
def test_graphs_and_code_of_functions(which: int) -> None:
    theirs, ours = (lib.fx.symbolic_trace(functions(lib)[which]) for lib in LIBS)
    assert str(ours.graph) == str(theirs.graph)
    assert ours.code == theirs.code


def test_graphs_of_modules() -> None:
    theirs, ours = (lib.fx.symbolic_trace(net(lib)) for lib in LIBS)
    assert str(ours.graph) == str(theirs.graph)
    assert ours.code == theirs.code and str(ours) == str(theirs)
    assert ours.print_readable(False) == theirs.print_readable(False)
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    x = np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)
    expected = theirs(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(ours(leafax.from_numpy(x)).detach().numpy(), expected, rtol=1e-5)
    for lib, gm in zip(LIBS, (theirs, ours), strict=True):
        gm(lib.from_numpy(x)).sum().backward()
        assert gm.get_submodule("layers.0").scale.grad is not None
        module_stack = [n.meta.get("nn_module_stack", {}) for n in gm.graph.nodes][3]
        assert list(module_stack) == ["layers.0"]


def test_copies_and_pickles() -> None:
    for lib in LIBS:
        gm = lib.fx.symbolic_trace(net(lib))
        x = lib.ones(2, 3)
        other = copy.deepcopy(gm)
        assert other.code == gm.code and type(other).__name__ == "GraphModule"
        with lib.no_grad():
            other.bn.bias.add_(1)
            assert not lib.equal(other(x), gm(x)) and lib.equal(copy.copy(gm)(x), gm(x))
        plain = lib.fx.symbolic_trace(lib.nn.Sequential(OrderedDict(a=lib.nn.Linear(3, 2))))
        back = pickle.loads(pickle.dumps(plain))
        assert back.code == plain.code and lib.equal(back(x), plain(x))
        assert lib.equal(lib.fx.Interpreter(gm).run(x), gm(x))
        assert lib.fx.Transformer(gm).transform().code == gm.code


def test_changes() -> None:
    shown = []
    for lib in LIBS:
        gm = lib.fx.symbolic_trace(lambda x: lib.relu(x) + lib.relu(x + 1))  # noqa: B023
        found = lib.fx.replace_pattern(gm, lambda a: lib.relu(a), lambda a: lib.sigmoid(a) * 2)  # noqa: B023
        lines = [len(found), gm.code]
        for node in gm.graph.nodes:
            if node.op == "call_function" and node.target is lib.sigmoid:
                with gm.graph.inserting_after(node):
                    new = gm.graph.call_function(lib.tanh, node.args)
                    node.replace_all_uses_with(new)
                gm.graph.erase_node(node)
        with gm.graph.inserting_before(gm.graph.output_node()):
            gm.graph.call_function(operator.neg, (new,))
        lines.append(str(gm.graph))
        lines.append(gm.graph.eliminate_dead_code())
        gm.recompile()
        gm.graph.lint()
        lines += [gm.code, [round(v, 4) for v in gm(lib.tensor([0.5, -1.0])).tolist()]]
        graph = lib.fx.Graph()
        x = graph.placeholder("x")
        graph.output(graph.call_function(operator.add, (x, 1)))
        lines += [str(graph), lib.fx.GraphModule({}, graph)(3)]
        proxied = lib.fx.Proxy(x)
        lines += [repr(proxied + 1), repr(x.users)]
        module = lib.fx.symbolic_trace(net(lib))
        module.add_submodule("extra.deep", lib.nn.ReLU())
        lines.append([n for n, _ in module.named_modules()])
        module.delete_all_unused_submodules()
        lines.append([n for n, _ in module.named_modules()])
        lines.append(len(module.graph.find_nodes(op="call_module", target="bn")))
        shown.append(lines)
    assert shown[0] == shown[1]


def refused(lib: Any) -> list[Callable[[], Any]]:
    fx, trace = lib.fx, lib.fx.symbolic_trace
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(operator.neg, (x,))
    return [
        lambda: trace(lambda x: len(x)), lambda: trace(lambda x: list(x)),
        lambda: trace(lambda x: 1 if x else 2), lambda: trace(lambda x: lib.relu({x: 1})),
        lambda: trace(lambda x: int(x)), lambda: trace(lambda x: lib.nn.functional.relu(x, bad=1)),
        lambda: graph.erase_node(x), lambda: graph.call_function("x", ()),
        lambda: y.kwargs.update(a=1), lambda: fx.wrap("f"), lambda: fx.GraphModule(3, graph),
        lambda: fx.GraphModule({}, _reads(fx)),
    ]  # fmt: skip


def _reads(fx: Any) -> Any:
    graph = fx.Graph()
    graph.output(graph.get_attr("nothing"))
    return graph


@pytest.mark.parametrize("which", range(12))
def test_errors(which: int) -> None:
    said = []
    for lib in LIBS:
        with pytest.raises(Exception) as error:  # noqa: PT011
            refused(lib)[which]()
        said.append((error.type.__name__, str(error.value)))
    assert said[0] == said[1]


def test_concrete_arguments() -> None:
    shown = []
    for lib in LIBS:

        def fn(x: Any, b: Any, d: Any) -> Any:
            return x + d["k"][0] if b else x * d["k"][0]

        fn.__annotations__ = {}
        kept = {"b": True, "d": {"k": [lib.fx.PH]}}
        gm = lib.fx.symbolic_trace(fn, concrete_args=kept)
        one = lib.ones(1)
        none = lib.fx.symbolic_trace(lambda x, b: x if b is None else -x, concrete_args={"b": None})
        shown.append((gm.code, gm(one, True, {"k": [one]}).tolist(), none.code))
    assert shown[0] == shown[1]


def test_tracers_of_packages() -> None:
    """Extract features as torchvision does: node names by module path, another output."""
    shown = []
    for lib in LIBS:

        class PathTracer(lib.fx.Tracer):  # type: ignore[name-defined, misc]
            def __init__(self) -> None:
                super().__init__()
                self.current, self.paths = "", {}

            def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
                return type(m).__name__ in ("Linear", "BatchNorm1d")

            def call_module(self, m: Any, forward: Any, args: Any, kwargs: Any) -> Any:
                before, self.current = self.current, self.path_of_module(m)
                try:
                    return super().call_module(m, forward, args, kwargs)
                finally:
                    self.current = before

            def create_proxy(self, *args: Any, **kwargs: Any) -> Any:
                proxy = super().create_proxy(*args, **kwargs)
                self.paths[proxy.node] = self.current
                return proxy

        model = net(lib)
        tracer = PathTracer()
        graph = tracer.trace(model)
        gm = lib.fx.GraphModule(tracer.root, graph, "Features")
        old = gm.graph.output_node()
        wanted = [n for n, path in tracer.paths.items() if path == "layers.1.seq.1"]
        gm.graph.erase_node(old)
        with gm.graph.inserting_after(list(gm.graph.nodes)[-1]):
            gm.graph.output({"feature": wanted[-1]})
        gm.graph.eliminate_dead_code()
        gm.recompile()
        made = gm(lib.ones(2, 3))["feature"]
        shown.append(([*tracer.paths.values()], gm.code, np.round(made.tolist(), 4).tolist()))
    assert shown[0] == shown[1]


def test_shapes() -> None:
    shown = []
    for lib in LIBS:
        gm = lib.fx.symbolic_trace(net(lib))
        importlib.import_module(f"{lib.__name__}.fx.passes.shape_prop").ShapeProp(gm).propagate(
            lib.ones(2, 3)
        )
        notes = [n.meta["tensor_meta"] for n in gm.graph.nodes if "tensor_meta" in n.meta]
        shown.append([str(tuple(m)) for m in notes])
    assert shown[0] == shown[1] and len(shown[0]) > 20


@leafax.fx.wrap
def wrapped(x: Any) -> Any:
    return x if x.sum() > 0 else -x


def test_wrapped_functions() -> None:
    gm = leafax.fx.symbolic_trace(lambda x: wrapped(x) + 1)
    assert "wrapped(x)" in gm.code and gm(leafax.tensor([-2.0])).tolist() == [3.0]
    assert not leafax.fx._symbolic_trace.is_fx_tracing()  # type: ignore[attr-defined]
    assert leafax.fx.experimental.proxy_tensor.get_proxy_mode() is None
    with pytest.raises(NotImplementedError, match="make_fx traces PyTorch's dispatcher"):
        leafax.fx.experimental.proxy_tensor.make_fx(wrapped)
