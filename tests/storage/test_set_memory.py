"""`Tensor.set_`, version counters set by hand, views made again, the order of a backward pass."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from helpers.sameness import Log, same

import leafax


def test_set_shares_memory_and_counts_for_itself() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        a, b = torch.ones(3), torch.arange(4.0).view(2, 2)
        log(a.set_(b) is a, a.shape, a.stride(), a._version, b._version)
        a.add_(1)
        log(b, a._version, b._version)
        b.add_(1)
        log(a, a._version, b._version)
        log(a.set_(), a._version)
        t, u = torch.ones(3), torch.zeros(4) * 2
        view, twin = t[1:], t.detach()
        t.set_(u)
        view.add_(1)
        twin.mul_(3)
        u[0] = 7.0
        log(t, view, twin, view._base is t, view.storage_offset(), t._version)
        t.set_(u[1:]).add_(3)
        log(u, t.storage_offset(), t._is_view(), t.set_(t)._version)
        t.set_(u, 1, (2, 2), (1, 1))
        log(t, t.stride(), torch.ones(1).set_(u, 0, (2, 2)))


def test_set_and_autograd() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.ones(2, requires_grad=True)

        def attempt(t: Any, *source: Any) -> None:
            try:
                t.set_(*source)
                log(t, t.grad_fn and t.grad_fn.name(), t._version, t.is_leaf, t._is_view())
                t.sum().backward()
            except RuntimeError as e:
                log(str(e))

        for t in (lambda: x, lambda: x * 2, lambda: x.view(2, 1), lambda: x.detach()):
            attempt(t())
            attempt(t(), torch.ones(3))
            attempt(t(), torch.ones(3, requires_grad=True))
            attempt(t(), torch.ones(3, requires_grad=True) * 2)
        with torch.no_grad():
            x.set_(torch.zeros(5))
        (x * 2).sum().backward()
        log(x, x.grad, x._version)
        y = x * 3
        with torch.no_grad():
            y.set_(torch.ones(5))
        log(y, y.grad_fn.name())
        y.sum().backward()
        log(x.grad)
        q, p = torch.ones(3), torch.ones(3, requires_grad=True)
        z = (p * q).sum()
        q.set_(torch.zeros(3))
        with pytest.raises(RuntimeError) as e:
            z.backward()
        log(str(e.value))


def test_set_refuses_other_dtypes_and_foreign_inference_tensors() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        for dtype in (torch.int, torch.int64, torch.half, torch.double):
            with pytest.raises(RuntimeError) as e:
                torch.ones(2).set_(torch.ones(2, dtype=dtype))
            log(str(e.value))
        with torch.inference_mode():
            t = torch.ones(2).set_(torch.zeros(3))
        log(t.is_inference(), torch.ones(2).set_(t).is_inference())
        with pytest.raises(RuntimeError) as e:
            t.set_(torch.ones(3))
        log(str(e.value))


def test_set_says_what_it_cannot_do() -> None:
    with pytest.raises(TypeError, match=r"invalid combination of arguments - got \(int\)"):
        leafax.ones(2).set_(1)
    view = leafax.ones(4, requires_grad=True).clone()[:2]
    with pytest.raises(RuntimeError, match="set_.. of a view that takes part in autograd"):
        view.set_(leafax.zeros(2))


def test_version_counters_set_by_hand() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        write = torch._C._autograd._unsafe_set_version_counter
        keep = torch.autograd._unsafe_preserve_version_counter
        x = torch.ones(2, requires_grad=True).clone()
        x.add_(1)
        y = (x * torch.ones(2, requires_grad=True)).sum()
        with keep(x):
            x.detach().mul_(2)
        log(x, x._version)
        y.backward()  # the write is not seen
        a, b = torch.ones(2), torch.ones(2)
        with keep((a, b)):
            a.add_(1)
            b.mul_(3).add_(1)
        log(a, b, a._version, b._version)
        view = a[:1]
        write((a,), (7,))
        view.add_(1)
        log(a._version, view._version)
        for wrong in (((a,), (-1,)), ((a,), (1, 2))):
            with pytest.raises(RuntimeError) as e:
                write(*wrong)
            log(str(e.value))
        p = torch.ones(2, requires_grad=True)
        z = (p * b).sum()
        write((b,), (5,))
        with pytest.raises(RuntimeError) as e:
            z.backward()
        log(str(e.value))


def test_views_made_again_by_their_own_ops() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        force, enabled = (
            torch.autograd._force_original_view_tracking, torch.autograd.is_view_replay_enabled,
        )  # fmt: skip
        x = torch.arange(4.0).view(2, 2).requires_grad_()

        def names(view: Any) -> list[str]:
            found, node = [], view.grad_fn
            while node is not None:
                found.append(node.name())
                node = node.next_functions[0][0] if node.next_functions else None
            return found

        def written(make: Any) -> None:
            base = x.clone()
            view = make(base)
            view.mul_(2)
            log(names(view))
            log(torch.autograd.grad((view * view).sum() + base.sum(), x)[0].tolist())

        with force(True):
            log(enabled())
            for make in (
                lambda c: c.view(-1), lambda c: c.t()[0], lambda c: c[0, 1:],
                lambda c: c.diagonal(), lambda c: c.as_strided((2,), (1,)),
            ):  # fmt: skip
                written(make)
            early = (c := x.clone()).view(-1)
        c.mul_(2)
        log(enabled(), names(early))  # what counts is when the view was made
        late = (c := x.clone()).view(-1)
        with force(True):
            late.mul_(2)
            log(names(late))
        scope = force(True)
        log(enabled())

        @force(False)
        def inside() -> None:
            log(enabled())
            written(lambda c: c.view(-1))

        log(enabled())
        inside()
        with scope:
            log(enabled())
        log(enabled())
        written(lambda c: c.view(-1))


def test_the_order_of_a_backward_pass() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        order = torch._C._current_graph_task_execution_order

        def hooked(out: Any, run: Any) -> None:
            seen: list[Any] = []
            out.register_hook(lambda g: seen.append(order()))
            with torch.autograd.set_multithreading_enabled(False):
                run()
            log([n.name() for n in seen[0]])

        def leaf(value: float) -> Any:
            return torch.tensor(value, requires_grad=True)

        out = leaf(1.0).clone().sin().exp()
        hooked(out, out.backward)
        out = leaf(2.0).sin() * leaf(1.0).cos()
        hooked(out, out.backward)
        a = leaf(1.0)
        out = a.sin() * a.cos()
        hooked(out, out.backward)
        b = a * 2
        first, second, third = b.sin(), b.cos(), b.cos()
        hooked(third, lambda: torch.autograd.grad((first, third, second), a))
        out = (a * leaf(3.0)).sin()
        hooked(out, lambda: torch.autograd.grad(out, a))
        with pytest.raises(RuntimeError) as e:
            order()
        log(str(e.value))
        out = a.sin()
        out.register_hook(lambda g: order())
        with pytest.raises(RuntimeError) as e:
            out.backward()
        log(str(e.value))


def test_numpy_of_what_requires_grad_without_grad_mode() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.ones(2, requires_grad=True)
        with torch.no_grad():
            log(x.numpy().tolist())
        with pytest.raises(RuntimeError) as e:
            x.numpy()
        log(str(e.value))


def test_a_view_that_lies_apart_from_its_base_is_not_written_to_under_autograd() -> None:
    x = leafax.ones(2, 2, requires_grad=True) * 2
    view = x[0]
    x.data = leafax.zeros(2, 2)
    with pytest.raises(RuntimeError, match="so that the two lie in memory apart"):
        view.mul_(2)
    assert (x == 0).all() and (view == 2).all()


@pytest.mark.parametrize("cut", [False, True])
def test_a_leaf_with_other_memory_has_another_end_of_its_path(cut: bool) -> None:
    """`set_()` and `.data = ` of another dtype; graphs from before keep the node that they had."""

    @same
    def program(torch: Any, log: Log) -> Any:
        other = ("x.set_(torch.ones(2))", "x.set_(torch.ones(3))", "x.set_(x)",
                 "x.data = torch.ones(2).double()", "x.data = torch.ones(2)")  # fmt: skip
        for line in other:
            x = torch.tensor([1.0, 2.0], requires_grad=True)
            out = x.clone() + x.detach()
            edge = torch.autograd.graph.get_gradient_edge(x)
            if cut:
                log(out)
            x.register_hook(lambda g: log(g.dtype))
            with torch.no_grad():
                exec(line, {"x": x, "torch": torch})
            log(edge.node is torch.autograd.graph.get_gradient_edge(x).node)
            try:
                log(torch.autograd.grad(out.sum(), x, retain_graph=True))
            except RuntimeError as e:
                log(str(e))
            log(torch.autograd.grad(out.sum(), edge, retain_graph=True))
            out.sum().backward()
            log.gradients(x.grad)
            if x.grad.shape == x.shape:
                (x * 2).sum().backward()
                log.gradients(x.grad)


@pytest.mark.parametrize("cut", [False, True])
def test_what_was_detached_or_viewed_keeps_the_memory(cut: bool) -> None:
    """`x.data = ` changes what nodes saved as `x`, and nothing else."""

    @same
    def program(torch: Any, log: Log) -> Any:
        saved = ("x * x", "x[:1] * x[:1]", "x.clone() * x.detach()", "x * w", "x * w[:]",
                 "x * w.detach()", "x * x.detach()[:]")  # fmt: skip
        writes = ("x.data = torch.ones(2) * 5", "x.data = torch.ones(2).double() * 5",
                  "x.data.mul_(1); x.data = torch.ones(2) * 5", "w.data = torch.ones(2) * 7",
                  "x.data = torch.ones(2) * 5; x.data.mul_(3)")  # fmt: skip
        for what in saved:
            for write in writes:
                names = {"torch": torch, "w": torch.tensor([3.0, 4.0])}
                x = names["x"] = torch.tensor([1.0, 2.0], requires_grad=True)
                out = eval(what, names).sum()
                if cut:
                    log(out)
                exec(write, names)
                out.backward()
                log.gradients(x.grad)


@pytest.mark.parametrize("cut", [False, True])
def test_gradients_by_the_result_take_the_result_of_before(cut: bool) -> None:
    """An op that saved its operand and its result sees new operand values and the old result."""

    @same
    def program(torch: Any, log: Log) -> Any:
        ops = ("x.std(0)", "torch.std_mean(x, 0)[0]", "sum(t.sum() for t in torch.std_mean(x, 1))",
               "torch.std_mean(x)[0]", "x.logsumexp(0)", "x.logcumsumexp(1)", "x.norm(3)",
               "torch.linalg.norm(x)", "torch.linalg.norm(x, dim=0)", "torch.dist(x, a, 3)",
               "torch.linalg.vector_norm(x, 3, dim=1)", "x.prod(0)", "x.max()", "x.median()",
               "x.nanmedian()", "torch.aminmax(x)[0]", "x.amax(0)", "torch.hypot(x, a)",
               "torch.special.erfcx(x)", "x * x")  # fmt: skip
        for what in ops:
            for write in ("x.data.sub_(a * 0.1)", "x.data = x.detach() - a * 0.1"):
                a = torch.tensor([[0.5, -1.25, 2.0], [1.5, 0.25, -0.75]], dtype=torch.float64)
                x = (a.flip(0) * 1.25).requires_grad_()
                names = {"torch": torch, "a": a, "x": x}
                out = eval(what, names)
                if cut:
                    log(out)
                exec(write, names)
                out.backward(torch.ones_like(out) * 1.5)
                log.gradients(x.grad + 0)


@pytest.mark.parametrize("cut", [False, True])
def test_copies_are_of_version_1_and_backward_knows(cut: bool) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        with torch.inference_mode():
            i = torch.ones(2)
        makers = (copy.copy, copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a)))
        for make in (*makers, lambda a: i.clone().requires_grad_()):
            for a in (torch.ones(2), torch.ones(2) * 2):
                b = make(a.requires_grad_())
                y = (b * b).sum()
                if cut:
                    log(y)
                y.backward(retain_graph=True)
                log(b._version)
                log.gradients(b.grad)
                with torch.no_grad():
                    b.add_(1)
                with pytest.raises(RuntimeError) as e:
                    y.backward()
                log(str(e.value))


def test_a_write_that_no_version_counts_reaches_views_that_only_the_graph_has() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        for what in ("x[:1] * x[:1]", "x.clone() * x.detach()", "x * w[:]"):
            for write in ("x.data.mul_(2)", "w.data[0] = 7.0", "x.data = torch.ones(2) * 5"):
                names = {"torch": torch, "w": torch.tensor([3.0, 4.0])}
                x = names["x"] = torch.tensor([1.0, 2.0], requires_grad=True)
                out = eval(what, names).sum()
                log(out)
                exec(write, names)
                log.gradients(*torch.autograd.grad(out, x, create_graph=True))
                out.backward()
                log.gradients(x.grad)


@pytest.mark.parametrize("cut", [False, True])
def test_a_leaf_that_has_another_shape_when_its_gradient_comes(cut: bool) -> None:
    """PyTorch copies the gradient into the leaf's shape, if it may not lie as it is."""

    @same
    def program(torch: Any, log: Log) -> Any:
        others = ("x.t_()", "x.data = torch.ones(3)", "x.data = torch.ones(3, 2)",
                  "x.unsqueeze_(0)", "x.set_(torch.ones(3))")  # fmt: skip
        for made in ("x * 2", "x.clone()", "x.view(-1) + 1", "x.sum(1)"):
            for other in others:
                names = {"torch": torch, "x": torch.arange(6.0).view(2, 3).requires_grad_()}
                x, out = names["x"], eval(made, names).sum()
                if cut:
                    log(out)
                with torch.no_grad():
                    exec(other, names)
                log.attempt(out.backward)
                log.gradients(x.grad)


def test_what_was_saved_in_a_shape_that_is_gone() -> None:
    # In PyTorch what was saved is the new tensor, and newer graphs of `x` raise, too, as long as
    # one from before is alive; here only those from before do.
    x = leafax.ones(2, requires_grad=True)
    out = (x * x).sum()
    out.item()
    x.data = leafax.ones(3)
    with pytest.raises(RuntimeError) as e:
        out.backward()
    assert str(e.value) == (
        "a tensor of shape [2] that was saved for backward has got memory of shape [3] since, by "
        "`.data = `, so its gradient cannot be computed. Call backward() before, or save a clone()."
    )


def test_a_remembered_backward_looks_at_the_shapes_of_leaves() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        for other in (False, False, False, True, False):
            x = torch.ones(2, 3, requires_grad=True)
            out = (x * 2).sum()
            if other:
                with torch.no_grad():
                    x.data = torch.ones(3)
            log.attempt(out.backward)
            log.gradients(x.grad)


@pytest.mark.parametrize("at_rest", [False, True])
@pytest.mark.parametrize("base", ["leaf", "not a leaf", "no gradient"])
def test_other_memory_leaves_a_view_made_without_grad_its_flag(base: str, at_rest: bool) -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        leaf = lib.ones(2, dtype=lib.float64, requires_grad=True)
        t = {"leaf": leaf, "not a leaf": leaf * 1, "no gradient": leaf.data}[base]
        with lib.no_grad():
            views = t[1:], t[:1]
            others = lib.ones(3, dtype=lib.float64), leaf[:1]
            if at_rest:
                lib.stack([others[0].sum(), others[1].sum()]).tolist()
            for view, other in zip(views, others, strict=True):
                view.data = other
                log(view.requires_grad, view.is_leaf, view.detach())
