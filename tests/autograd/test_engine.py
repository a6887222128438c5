"""The engine's order and its checks of what hooks return, against torch."""

from __future__ import annotations

import threading
import warnings
import weakref
from collections import OrderedDict
from typing import Any

import pytest
import torch
from helpers.sameness import Log, same

import leafax


def test_what_autograd_grad_captures() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        a = torch.tensor(1.0, requires_grad=True)
        b = a * 2
        c = b * 3
        b.register_hook(lambda g: g * 10)
        b.grad_fn.register_prehook(lambda g: (g[0] * 100,))
        log(torch.autograd.grad(c, b, retain_graph=True))
        log(torch.autograd.grad(c, (a, b), retain_graph=True))
        b.retain_grad()
        torch.autograd.grad(c, (a, b), retain_graph=True)
        log(b.grad)


def test_which_hooks_run() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        a = torch.tensor(1.0, requires_grad=True)
        b = a * 2
        c = b * 2
        end = b.grad_fn.next_functions[0][0]
        a.register_hook(lambda g: log("tensor a"))
        b.register_hook(lambda g: log("tensor b"))
        end.register_hook(lambda i, o: log("after a", i, o))
        end.register_prehook(lambda o: log("before a", o))
        b.grad_fn.register_hook(lambda i, o: log("after b", i, o))
        b.grad_fn.register_prehook(lambda o: log("before b", o))
        a.register_post_accumulate_grad_hook(lambda t: log("accumulated"))
        log("grad b", torch.autograd.grad(c, b, retain_graph=True))
        log("grad a b", torch.autograd.grad(c, (a, b), retain_graph=True))
        c.backward(inputs=(b,), retain_graph=True)
        log("inputs a b")
        c.backward(inputs=(a, b), retain_graph=True)
        log("all")
        c.backward()


def test_hooks_are_called_where_no_gradient_arrives() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        class Nothing(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * 2

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return None

        x = torch.ones(2, requires_grad=True)
        end = x.view_as(x).grad_fn.next_functions[0][0]
        x.register_hook(lambda g: log("hook", g))
        end.register_hook(lambda i, o: log("after", i, o))
        x.register_post_accumulate_grad_hook(lambda t: log("accumulated", t.grad))
        Nothing.apply(x * 1).sum().backward()
        parts = x.detach().requires_grad_().unbind()
        parts[0].register_hook(lambda g: log("part", g))
        parts[1].backward()


@pytest.mark.parametrize(
    "result",
    [
        lambda g: g[0],
        lambda g: list(g),
        lambda g: 3,
        lambda g: g[:-1],
        lambda g: (*g, None),
        lambda g: (g[0].double(), *g[1:]),
        lambda g: (g[0][:1], *g[1:]),
        lambda g: (None, *g[1:]),
        lambda g: tuple(1 for _ in g),
    ],
)
@pytest.mark.parametrize("before", [True, False])
def test_what_a_nodes_hook_may_return(result: Any, before: bool) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.ones(3, requires_grad=True)
        node = (y := x * 3).grad_fn
        if before:
            node.register_prehook(result)
        else:
            node.register_hook(lambda i, o: result(i))
        with log.catch():
            y.sum().backward()
        log(x.grad)


def test_what_a_tensors_hooks_may_return() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        class Hook:
            def __call__(self, g: Any) -> Any:
                return g[:2]

        x = torch.ones(3, requires_grad=True)
        for hook in (lambda g: g.double(), lambda g: 5, Hook()):
            y = x * 3
            y.register_hook(hook)
            log.attempt(y.sum().backward)
        var, mean = torch.var_mean(x)
        var.register_hook(lambda g: torch.ones(()))
        log.attempt(mean.backward)
        x.register_post_accumulate_grad_hook(lambda t: t.grad)
        log.attempt(x.sum().backward)


def test_the_order_around_accumulation() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.zeros(3, requires_grad=True)
        end = x.view_as(x).grad_fn.next_functions[0][0]

        def accumulated(t: Any) -> None:
            t.grad.add_(0.5)

        def after(grad_in: Any, grad_out: Any) -> None:
            x.grad = grad_out[0].mul(10)  # the gradient that `.grad` holds

        x.register_hook(lambda g: g - 2)
        end.register_prehook(lambda g: (g[0] / 5,))
        x.register_post_accumulate_grad_hook(accumulated)
        end.register_hook(after)
        x.sum().backward()
        log(x.grad)


def test_nodes_can_be_called() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        g = torch.ones(2)
        nodes = [t.grad_fn for t in (x**2, x * x.detach(), x * 3, x * x)]
        with torch.no_grad():
            log(*[node(g) for node in nodes], nodes[-1](None))
        for args in ((), (g, g), (3,)):
            log.attempt((x * 2).grad_fn, *args)


def test_what_nodes_know_of_their_gradients() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.rand(2, 3, requires_grad=True)
        for t in (x * 2, torch.var_mean(x, 0)[1], x.max(1)[0], x.double()):
            for m in t.grad_fn._input_metadata:
                log(m.shape, type(m.shape).__name__, m.dtype, m.is_nested_tensor, str(m.device))


def test_edges_as_roots_and_inputs() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        edge_of = torch.autograd.graph.get_gradient_edge
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        middle = x.sin().sum()
        out, edge = middle.exp(), edge_of(middle)
        (g,) = torch.autograd.grad(out, edge, retain_graph=True)
        log(g, torch.autograd.grad(edge, x, grad_outputs=g, retain_graph=True))
        torch.autograd.backward((edge, out), retain_graph=True)
        log(x.grad)
        log.attempt(torch.autograd.grad, edge, x, grad_outputs=torch.ones(4))
        log.attempt(torch.autograd.grad, edge, x, grad_outputs=g.to(torch.complex64))
        log.attempt(torch.autograd.grad, edge_of(x.cos()), x)
        unused = edge_of(x.cos())
        log.attempt(torch.autograd.grad, out, unused, materialize_grads=True)


def test_inputs_by_name() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = torch.tensor([3.0, 4.0], requires_grad=True)
        z = (x**2 * y).sum()
        log(torch.autograd.grad(z, {"x": x, "y": y}, retain_graph=True))
        log.attempt(torch.autograd.grad, z, OrderedDict(x=x))
        log.attempt(torch.autograd.grad, z, {})
        log.attempt(torch.autograd.backward, z, inputs=OrderedDict(x=x))
        torch.autograd.backward(z, inputs={"y": y})
        log(x.grad, y.grad)


def test_batched_gradients_are_checked() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.ones(2, 2, requires_grad=True)
        for g in (torch.ones(2, 2), torch.ones(3, 4, 5)):
            log.attempt(torch.autograd.grad, x.clone(), x, g, is_grads_batched=True)


def test_dtypes_of_gradients() -> None:
    # PyTorch also takes the gradient of a Function that returns its input, and of a write to the
    # leaf, in `grad_dtype`; here that is a leaf's `.grad` alone.
    @same
    def program(torch: Any, log: Log) -> Any:
        class Wide(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * 2

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g.to(torch.float64)

        for want in (torch.float32, torch.float16, None):
            x = torch.ones(2, requires_grad=True)
            x.grad_dtype = want
            log(x.grad_dtype)
            Wide.apply(x).sum().backward()
            log(x.grad)
        with log.catch():
            x.grad_dtype = torch.float16
        with log.catch():
            x.grad_dtype = 3
        with log.catch():
            (x * 2).grad_dtype = torch.float16
        with log.catch():
            (x * 2).grad_dtype  # noqa: B018
        y = torch.ones(2, requires_grad=True)
        for dtype in (torch.float64, torch.int64, torch.complex64, torch.bfloat16):
            with log.catch():
                y.grad = torch.ones(2, dtype=dtype)
        with log.catch():
            y.grad = torch.ones(3)


def test_errors_that_wait() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        functions = torch._C._functions
        x = torch.ones(2, requires_grad=True)
        a, b = functions.DelayedError("boom", 2)(x, x * 2)
        log(a, a.grad_fn.name(), a.grad_fn)
        log.attempt(b.sum().backward)
        u = functions.UndefinedGrad()(x * 2)
        log(u, u.grad_fn.name())
        u.sum().backward()
        log(x.grad)
        log(isinstance(x.clone().grad_fn.next_functions[0][0], functions.AccumulateGrad))
        log(isinstance(u.clone().grad_fn, functions.CloneBackward0))


@pytest.fixture
def every_warning() -> Any:
    """PyTorch's warnings that come once are left to the tests that look for them."""
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(False)


def test_the_graph_of_a_gradient_that_cannot_be_differentiated(every_warning: None) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        class Once(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any, k: int, y: Any) -> Any:
                return x + y * k

            @staticmethod
            @torch.autograd.function.once_differentiable
            def backward(ctx: Any, g: Any) -> Any:
                return g, None, g * 2

        x = torch.ones(2, requires_grad=True)
        y = torch.ones(2, requires_grad=True)
        go = torch.ones(2, requires_grad=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Once.apply(x, 2, y).backward(go, create_graph=True)
        log(x.grad.grad_fn, y.grad.grad_fn)
        log.attempt(x.grad.sum().backward)
        x.grad = y.grad = None


def test_asking_which_nodes_run() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        runs, current = torch._C._will_engine_execute_node, torch._C._current_autograd_node
        a = torch.ones(2, requires_grad=True)
        b = a * 2
        other = b.cos()
        c = b.exp()
        leaf = b.grad_fn.next_functions[0][0]

        def hook(g: Any) -> None:
            log(runs(b.grad_fn), runs(other.grad_fn), current().name())
            log.attempt(runs, leaf)

        b.register_hook(hook)
        torch.autograd.grad(c.sum(), a, retain_graph=True)
        c.sum().backward(inputs=a, retain_graph=True)
        c.sum().backward()
        log.attempt(runs, b.grad_fn)
        log.attempt(runs, b)
        log(current())


def test_functions_by_keyword() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        class Scaled(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any, y: Any, scale: float = 1.0) -> Any:
                ctx.save_for_backward(x, y)
                ctx.scale = scale
                return scale * x * y

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                x, y = ctx.saved_tensors
                return g * ctx.scale * y, g * ctx.scale * x, None

        x = torch.tensor([2.0], requires_grad=True)
        y = torch.tensor([3.0], requires_grad=True)
        Scaled.apply(x, y=y, scale=5.0).backward()
        Scaled.apply(y=x, x=y).backward()
        log(x.grad, y.grad)
        log.attempt(Scaled.apply, x, bad=y)
        log.attempt(Scaled.apply, x, y, y=y)


def test_functions_in_the_old_way() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        class Old(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save_for_backward(x)
                return x.clone(), x.clone()

            @staticmethod
            def backward(ctx: Any, a: Any, b: Any) -> Any:
                ctx.saved_variables  # noqa: B018
                return a + b

        class Both(Old):
            @staticmethod
            def vjp(ctx: Any, *g: Any) -> Any:
                return g[0]

        class Two(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.mark_dirty(x)
                return x.mul_(2), x.clone()

        x = torch.ones(2, requires_grad=True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            Old.apply(x)[0].sum().backward()
        log([(w.category.__name__, str(w.message)) for w in caught])
        log.attempt(Both.apply(x)[0].sum().backward)
        log.attempt(Two.apply, x.clone()[:1])


@pytest.mark.parametrize("lib", [torch, leafax])
@pytest.mark.parametrize(
    "name",
    ["data", "requires_grad", "_grad_fn", "_backward_hooks", "_post_accumulate_grad_hooks"],
)
def test_what_cannot_be_deleted(lib: Any, name: str) -> None:
    words = {
        "data": "Deleting tensor data is not allowed. Delete tensor instead!",
        "requires_grad": "requires_grad must be a bool",
        "_grad_fn": "Deletion of _grad_fn not allowed. Detach tensor instead!",
        "_backward_hooks": "Deletion of _backwards_hooks not allowed!",
        "_post_accumulate_grad_hooks": "Deletion of _post_accumulate_grad_hooks not allowed!",
    }
    x = lib.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError) as info:
        delattr(x, name)
    assert str(info.value) == words[name]


def test_a_tensor_stores_its_fields_as_any_object_does() -> None:
    """With a `__setattr__` or `__delattr__` every store takes seven times as long."""
    for name in ("__setattr__", "__delattr__", "__getattribute__"):
        assert getattr(leafax.Tensor, name) is getattr(object, name), name


def test_the_private_name_of_grad_fn() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        w = torch.ones(2, requires_grad=True)
        x = w * 2
        log([t._grad_fn is None for t in (w, x, x.detach())])
        log(x._grad_fn.name())
        log.attempt(setattr, x, "_grad_fn", x.grad_fn)
        x._grad_fn = None
        log([x.requires_grad, x.grad_fn is None, x.is_leaf])
        hooks = {0: lambda t: None}
        w._post_accumulate_grad_hooks = hooks
        (w * 3).sum().backward()
        log(w.grad)
        w._post_accumulate_grad_hooks = None
        return w._post_accumulate_grad_hooks


def test_hooks_may_switch_the_saved_tensor_hooks() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        hooks = torch.autograd.graph.saved_tensors_hooks

        def unpack(x: Any) -> Any:
            inner.__exit__()
            return x

        inner = hooks(lambda x: x, unpack)
        x = torch.ones(2, requires_grad=True)
        with hooks(lambda x: x, lambda x: x):
            inner.__enter__()
            x.sin().sum().backward()
            inner.__exit__()  # what the unpack hook did ended with the backward pass
        log(x.grad)
        y = x.exp()
        y.grad_fn._raw_saved_result.register_hooks(lambda t: t * 2, lambda t: t / 2)
        y.sum().backward()
        log(x.grad)


def test_passes_are_numbered() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        number = torch._C._current_graph_task_id
        t = torch.tensor(1.0, requires_grad=True).clone()
        seen: list[int] = []
        t.register_hook(lambda g: seen.append(number()))
        for _ in range(3):
            t.backward(retain_graph=True)
        log([k - seen[0] for k in seen], number())


def test_numbers_of_nodes_order_the_walk() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * 2

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                log(torch._C._autograd._get_current_graph_task_keep_graph())
                return grad * 2

        x = torch.tensor([1.0, 2.0], requires_grad=True)
        order: list[str] = []
        a, b = x + 1, x * 3
        f, g = Twice.apply(x), Twice.apply(x)
        sums = [a + b, f + g, b + f]
        for k, t in enumerate((a, b, f, g)):
            t.grad_fn._set_sequence_nr(100 - k)
            t.register_hook(lambda grad, k=k: order.append("abfg"[k]))
            log(t.grad_fn._sequence_nr())
        for y in sums:
            y.sum().backward(retain_graph=True)
        (a + b).sum().backward()
        log(order, torch._C._autograd._get_current_graph_task_keep_graph())
        log.gradients(x.grad)


def test_notes_on_nodes_die_with_the_graph() -> None:
    class Note:
        pass

    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([1.0, 2.0], requires_grad=True)

        def noted(t: Any) -> Any:
            note = Note()
            t.grad_fn.metadata["note"] = note
            return weakref.ref(note)

        def alone() -> Any:
            return noted(x.sin() * 2)

        log(alone()() is None)
        y = x.sin()
        ref = noted(y)
        z = y * 2  # leads to the node, too
        del y
        log(ref() is None, z.grad_fn.next_functions[0][0].metadata["note"] is ref())
        node = z.grad_fn
        del z
        log(ref() is None)  # its parent is held
        del node
        log(ref() is None)


def test_objects_of_a_thread() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        own = torch._C
        kept = {"a": 1}
        log(own._is_key_in_tls("kept"))
        own._stash_obj_in_tls("kept", kept)
        log(own._is_key_in_tls("kept"), own._get_obj_in_tls("kept") is kept)
        seen: list[bool] = []
        thread = threading.Thread(target=lambda: seen.append(own._is_key_in_tls("kept")))
        thread.start()
        thread.join()
        own._remove_obj_from_tls("kept")
        log(seen, own._is_key_in_tls("kept"))
        with log.catch():
            own._get_obj_in_tls("kept")


def test_the_node_of_a_leaf_can_be_called() -> None:
    """It accumulates what it is given and calls the leaf's hooks for that, no others."""

    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        node = x.view_as(x).grad_fn.next_functions[0][0]
        x.register_hook(lambda g: log("hook"))
        x.register_post_accumulate_grad_hook(lambda p: log("after", p.grad is None))
        node.register_prehook(lambda g: log("prehook"))
        for g in (torch.ones(2, requires_grad=True), torch.ones(2), None):
            log(node(g), x.grad.tolist(), x.grad.requires_grad)
        with torch.no_grad():
            node(torch.ones(2))
        log(x.grad.tolist(), x.grad.requires_grad)
        x.grad = None
        for bad in ((), (3,), (torch.ones(3),), (torch.ones(2), torch.ones(2))):
            with pytest.raises((TypeError, RuntimeError)) as e:
                node(*bad)
            log(str(e.value), x.grad is None)
