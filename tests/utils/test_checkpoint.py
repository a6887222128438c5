"""`utils.checkpoint` against torch, and that the program's memory really falls."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import jax.numpy as jnp
import pytest
import torch.utils.checkpoint  # noqa: F401  # `same` programs read it off `torch`
from helpers.cheap_programs import OPTIMIZED
from helpers.sameness import Log, same

import leafax
import leafax.utils.checkpoint
from leafax._runtime import cut


@pytest.mark.parametrize("reentrant", [True, False])
def test_values_and_gradients(reentrant: bool) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        checkpoint = torch.utils.checkpoint.checkpoint
        w = torch.tensor([2.0, 3.0], requires_grad=True)
        x = torch.tensor([0.5, 1.0], requires_grad=True)

        def block(x: Any, k: Any) -> Any:
            h = (x * w).sin()
            return (h * k).exp(), h.detach() * x

        y, z = checkpoint(block, x * 1, 3, use_reentrant=reentrant)
        log.gradients(y.detach(), z.detach())
        log(y.requires_grad, z.requires_grad)
        (y.sum() + z.sum()).backward()
        log.gradients(x.grad, w.grad)


@pytest.mark.parametrize("where", ["forward", "backward", "both"])
@pytest.mark.parametrize("reentrant", [True, False])
def test_hooks_around_it_see_its_arguments_alone(where: str, reentrant: bool) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return 2 * g * ctx.saved_tensors[0]

        seen: list[str] = []

        def pack(t: Any) -> Any:
            seen.append("pack")
            return t * 2

        def unpack(t: Any) -> Any:
            seen.append("unpack")
            return t / 2

        graph = torch.autograd.graph
        contexts = (
            lambda: graph.saved_tensors_hooks(pack, unpack), graph.save_on_cpu,
            graph.allow_mutation_on_saved_tensors,
        )  # fmt: skip
        functions = (torch.exp, lambda v: (v * z).sin() * v, lambda v: Square.apply(v) * v)
        for context in contexts:
            for fn in functions:
                z = torch.tensor([0.5, -2.0, 1.5], dtype=torch.float64, requires_grad=True)
                with context() if where != "backward" else contextlib.nullcontext() as outer:
                    x = torch.utils.checkpoint.checkpoint(fn, z, use_reentrant=reentrant)
                    if where == "both":
                        (x * x).sum().backward()
                del outer
                if where != "both" and not (where == "forward" and context is contexts[2]):
                    with context() if where == "backward" else contextlib.nullcontext():
                        (x * x).sum().backward()
                log.gradients(z.grad)
                log(seen)
                seen.clear()


def test_nested_and_second_derivatives() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        checkpoint = torch.utils.checkpoint.checkpoint
        x = torch.tensor([0.5, 1.0], requires_grad=True)

        def inner(x: Any) -> Any:
            return x.sin() * x

        def outer(x: Any) -> Any:
            return checkpoint(inner, x, use_reentrant=False).exp()

        y = checkpoint(outer, x, use_reentrant=False)
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        g.sum().backward()
        log.gradients(g.detach(), x.grad)


def test_without_inputs_that_require_grad() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        checkpoint = torch.utils.checkpoint.checkpoint
        w = torch.ones(2, requires_grad=True)
        x = torch.ones(2)
        y = checkpoint(lambda x: x * w, x, use_reentrant=True)
        log(y.requires_grad)
        y = checkpoint(lambda x: x * w, x, use_reentrant=False)
        y.sum().backward()
        log.gradients(w.grad)


def test_errors_and_warnings() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        module = torch.utils.checkpoint
        x = torch.ones(2, requires_grad=True)
        log(module.checkpoint(lambda x: x * 2, x).requires_grad)
        log.attempt(module.checkpoint, lambda x: x, x, use_reentrant=True, foo=3)
        log.attempt(module.checkpoint, lambda x: x, x, use_reentrant=True, debug=True)
        fs = [lambda x: x * 2, lambda x: x.sin(), lambda x: x.exp(), lambda x: x + 1]
        y = module.checkpoint_sequential(fs, 2, x)
        y.sum().backward()
        log.gradients(x.grad)
        log.attempt(module.checkpoint_sequential, fs, 2, x, use_reentrant=False, foo=2)


def test_a_function_that_looks_at_values() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        def block(x: Any) -> Any:
            h = x.sin()
            return h * 2 if h.sum().item() > 0 else h

        x = torch.ones(2, requires_grad=True)
        torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False).sum().backward()
        log.gradients(x.grad)


def test_random_numbers_are_the_same_twice() -> None:
    x = leafax.ones(1000, requires_grad=True)
    drop = leafax.nn.functional.dropout
    y = leafax.utils.checkpoint.checkpoint(lambda x: drop(x, 0.5), x, use_reentrant=False)
    (y * 3).sum().backward()
    assert (x.grad == y.detach() * 3).all()


@pytest.mark.parametrize("reentrant", [True, False])
def test_the_function_is_called_again(reentrant: bool) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        calls = []

        def block(x: Any, *, k: int = 2) -> Any:
            calls.append(torch.is_grad_enabled())
            return (x * k).sin().exp()

        x = torch.tensor([0.5, 1.0], requires_grad=True)
        y = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=reentrant)
        log(calls, y.grad_fn.name())
        y.sum().backward(retain_graph=True)
        log(calls)
        y.sum().backward()
        log(calls)
        log.gradients(x.grad)
        log.attempt(lambda: y.sum().backward())
        with torch.no_grad():
            z = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=reentrant)
        log(z.requires_grad, calls)
        if not reentrant:
            y = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False, k=3)
            log.gradients(*torch.autograd.grad(y.sum(), x))


def test_the_graph_is_that_of_the_function() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([0.5, 1.0], requires_grad=True)
        w = torch.tensor([2.0, 3.0], requires_grad=True)

        def block(x: Any) -> Any:
            h = (x * w).sin()
            h.register_hook(lambda g: log.gradients(g) or g * 2)
            h[0] = h[1] * 2
            return h.exp(), h.detach(), x.view(1, 2)

        a, b, c = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
        log(a.grad_fn, b.requires_grad, c.grad_fn, c._is_view())
        log(a.grad_fn._saved_result)
        (a.sum() + c.sum()).backward()
        log.gradients(x.grad, w.grad)


@pytest.mark.quick(2)
@pytest.mark.parametrize("preserve", [True, False])
@pytest.mark.parametrize("reentrant", [True, False])
def test_random_state(reentrant: bool, preserve: bool) -> None:
    """The masks are the same both times, and the stream goes on as if there was no second call."""
    drop = leafax.nn.functional.dropout
    leafax.manual_seed(3)
    x = leafax.ones(1000, requires_grad=True)
    expected = (drop(x, 0.5), leafax.rand(3))
    leafax.manual_seed(3)
    y = leafax.utils.checkpoint.checkpoint(
        lambda x: drop(x * 1, 0.5), x, use_reentrant=reentrant, preserve_rng_state=preserve
    )
    (y * 3).sum().backward()
    assert (y == expected[0]).all()
    assert bool((x.grad == y.detach() * 3).all()) == preserve
    assert bool((leafax.rand(3) == expected[1]).all()) == preserve


CHANGES = {
    "shape": lambda x, n: x[:1].sin() if n > 1 else x.sin(),
    "dtype": lambda x, n: x.double().sin() if n > 1 else x.sin(),
    "fewer": lambda x, n: x.sin() if n > 1 else x.sin().cos().exp(),
    "more": lambda x, n: x.sin().cos() if n > 1 else x.sin(),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("options", [{}, {"determinism_check": "none"}, {"early_stop": False}])
def test_a_function_that_changes(change: str, options: dict[str, Any]) -> None:
    def program(torch: Any, log: Log) -> Any:
        calls = []

        def block(x: Any) -> Any:
            calls.append(1)
            return CHANGES[change](x, len(calls)) * 1

        x = torch.tensor([0.5, 1.0], requires_grad=True)
        y = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False, **options)
        try:
            y.sum().backward()
        except torch.utils.checkpoint.CheckpointError as e:
            log(str(e).split("Tip")[0])
        except RuntimeError:
            log("another error")
        else:
            log.gradients(x.grad)

    if options == {"determinism_check": "none"} and change in ("shape", "dtype"):
        return  # PyTorch computes with what it gets
    same(program)


def test_debug_lists_the_ops() -> None:
    calls = []

    def block(x: Any) -> Any:
        calls.append(1)
        return x.sin() if len(calls) > 1 else x.sin().exp()

    module = leafax.utils.checkpoint
    x = leafax.ones(2, requires_grad=True)
    with module.set_checkpoint_debug_enabled(True):
        y = module.checkpoint(block, x, use_reentrant=False)
    with pytest.raises(module.CheckpointError) as e:
        y.sum().backward()
    first, second = str(e.value).split("Operations executed during recomputation:")
    assert "exp()" in first and "sin()" in second and "exp()" not in second
    assert "test_checkpoint.py:" in first
    with module.set_checkpoint_early_stop(False):
        calls = [1]
        y = module.checkpoint(lambda x: block(x), x, use_reentrant=False)
        calls.clear()
    with pytest.raises(module.CheckpointError, match="trying to save more tensors"):
        y.sum().backward()


def test_more_errors() -> None:
    # Alone, `debug=True` lists the recorded ops and their lines; PyTorch lists kernels and stack
    # traces of both calls.
    @same
    def program(torch: Any, log: Log) -> Any:
        module = torch.utils.checkpoint
        x = torch.ones(2, requires_grad=True)
        call = module.checkpoint
        log.attempt(call, lambda x: x, x, use_reentrant=False, determinism_check="all")
        log.attempt(
            call, lambda x: x, x, use_reentrant=False, debug=True, context_fn=lambda: (None, None)
        )
        y = call(lambda x: x.sin(), x, use_reentrant=True)
        log.attempt(lambda: torch.autograd.grad(y.sum(), x))
        y = call(lambda x: x.sin(), x, use_reentrant=True)
        log.attempt(lambda: y.sum().backward(inputs=[x]))
        y = call(lambda x: x.detach(), x, use_reentrant=True)
        log.attempt(lambda: y.sum().backward())
        h = x * 1
        y = call(lambda h: h.sin(), h, use_reentrant=False)
        h.add_(1)
        with log.catch():
            y.sum().backward()
        with log.catch():
            call(lambda x: 1 // 0, x, use_reentrant=False)
        x.grad = None
        call(lambda x: x.sin(), x, use_reentrant=False).sum().backward()
        log.gradients(x.grad)


def test_contexts() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        import contextlib

        seen = []

        @contextlib.contextmanager
        def note(name: str, hides: bool = False) -> Any:
            seen.append("in " + name)
            try:
                yield
            except ZeroDivisionError:
                if not hides:
                    raise
            finally:
                seen.append("out " + name)

        def contexts() -> Any:
            return note("first"), note("second")

        def block(x: Any) -> Any:
            seen.append("called")
            return x.sin()

        call = torch.utils.checkpoint.checkpoint
        x = torch.ones(2, requires_grad=True)
        y = call(block, x, use_reentrant=False, context_fn=contexts)
        log(seen)
        y.sum().backward()
        log(seen)
        log.attempt(call, lambda x: 1 // 0, x, use_reentrant=False, context_fn=contexts)
        log.attempt(
            call, lambda x: 1 // 0, x, use_reentrant=False,
            context_fn=lambda: (note("first", True), note("second")),
        )  # fmt: skip


def test_nested_calls_are_counted() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        call = torch.utils.checkpoint.checkpoint
        counts = {"inner": 0, "outer": 0}

        def inner(x: Any) -> Any:
            counts["inner"] += 1
            return x.sin().exp()

        def outer(x: Any) -> Any:
            counts["outer"] += 1
            return call(inner, x.cos(), use_reentrant=False).tanh().sin()

        x = torch.tensor([0.5, 1.0], requires_grad=True)
        call(outer, x, use_reentrant=False).sum().backward()
        log(counts)
        log.gradients(x.grad)


def test_policies() -> None:
    """A policy is asked once the function has been called, not as each op runs."""

    @same
    def program(torch: Any, log: Log) -> Any:
        import functools

        module = torch.utils.checkpoint
        policies = module.CheckpointPolicy
        contexts = module.create_selective_checkpoint_contexts
        aten = torch.ops.aten
        x = torch.tensor([[0.5, 1.0], [2.0, 1.5]], requires_grad=True)
        w = torch.tensor([[1.0, 2.0], [0.5, 1.0]], requires_grad=True)
        asked = []

        def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
            asked.append((str(op), [tuple(a.shape) for a in args if hasattr(a, "shape")]))
            return policies.MUST_SAVE if op is aten.mm.default else policies.PREFER_RECOMPUTE

        def block(x: Any) -> Any:
            return ((x @ w).sin() * 2 @ w).exp().sum()

        def run(what: Any) -> Any:
            made = functools.partial(contexts, what)
            return module.checkpoint(block, x, use_reentrant=False, context_fn=made)

        y = run(policy)
        log(asked)
        y.backward(retain_graph=True)
        log(len(asked))
        log.gradients(x.grad, w.grad)
        log.attempt(lambda: y.backward())
        run([aten.mm.default, aten.sin.default]).backward()
        run(lambda ctx, op, *args: op == aten.exp.default).backward()
        log.gradients(x.grad, w.grad)
        log.attempt(contexts, [aten.mm])
        log.attempt(contexts, 3)
        log(str(aten.mm.default), repr(aten.mm.default), str(aten.mm))


def test_a_policy_saves_work() -> None:
    """Results that a policy keeps are not computed again: XLA counts the products."""
    import functools

    module = leafax.utils.checkpoint
    keep = functools.partial(
        module.create_selective_checkpoint_contexts, [leafax.ops.aten.mm.default]
    )

    def block(x: Any) -> Any:
        for _ in range(3):
            x = (x @ x).sin()
        return x

    def products(**options: Any) -> int:
        x = leafax.ones(32, 32, requires_grad=True)
        leafax.synchronize()
        y = module.checkpoint(block, x, use_reentrant=False, **options)
        y.sum().backward()
        arrays = list(leafax._core.trie.local.trace.arrays)
        leafax.synchronize()
        text = cut.plans[-1][1].lowered(arrays).compile(OPTIMIZED).as_text()
        assert y.shape == (32, 32)
        return text.count(" dot(")

    assert (products(), products(context_fn=keep)) == (3 + 3 + 6, 3 + 6)


SIZE = 128


def _temporaries(kind: str, reentrant: bool | None) -> float:
    """The memory between forward and backward of 4 calls with 6 products each, in matrices."""
    w = leafax.ones(SIZE, SIZE)

    def block(x: Any) -> Any:
        for _ in range(6):
            x = (x @ w).sin()
        return x

    @leafax.jax_function
    def opaque(x: Any) -> Any:
        for _ in range(6):
            x = jnp.sin(x @ x)
        return x

    x = leafax.ones(SIZE, SIZE, requires_grad=True)
    leafax.synchronize()
    h = x * 2
    for _ in range(4):
        fn = {
            "argument": block, "closure": lambda h=h: block(h), "opaque": opaque,
        }[kind]  # fmt: skip
        args = () if kind == "closure" else (h,)
        if reentrant is None:
            h = fn(*args)
        else:
            h = leafax.utils.checkpoint.checkpoint(fn, *args, use_reentrant=reentrant)
    h.sum().backward()
    arrays = list(leafax._core.trie.local.trace.arrays)
    leafax.synchronize()
    compiled = cut.plans[-1][1].lowered(arrays).compile(OPTIMIZED)
    return compiled.memory_analysis().temp_size_in_bytes / (4 * SIZE * SIZE)


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    ("kind", "reentrant"),
    [("argument", True), ("argument", False), ("closure", False), ("opaque", False)],
)
def test_memory_falls(kind: str, reentrant: bool) -> None:
    """XLA would merge the recomputation with the first time, had it no reason not to."""
    plain, less = _temporaries(kind, None), _temporaries(kind, reentrant)
    assert plain > 20 and less < 0.6 * plain, (less, plain)


def test_a_loop_compiles_once() -> None:
    w = leafax.ones(4, requires_grad=True)
    opt = leafax.optim.SGD([w], lr=0.1)
    for _ in range(4):
        leafax.explain(clear=True)
        opt.zero_grad()
        leafax.utils.checkpoint.checkpoint(
            lambda x: (x * w).sin(), w * 2, use_reentrant=False
        ).sum().backward()
        opt.step()
        leafax.synchronize()
    report = leafax.explain()
    assert len(report) == 1 and report[0].how == "cached"


@pytest.mark.parametrize("inner", [False, True])
def test_the_second_call_ends_early(inner: bool) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        module = torch.utils.checkpoint
        stop = module.set_checkpoint_early_stop
        calls = []

        def last(x: Any) -> Any:
            calls.append(1)
            return x.clone()  # saves nothing

        def function(x: Any) -> Any:
            return last(x.sin().cos())

        def run(*scopes: bool, **options: Any) -> None:
            calls.clear()
            x = torch.tensor([0.5, 1.0], requires_grad=True)
            with contextlib.ExitStack() as stack:
                for enable in scopes:
                    stack.enter_context(stop(enable))
                fn = function
                if inner:
                    fn = lambda x: module.checkpoint(function, x, use_reentrant=False).exp()  # noqa: E731
                y = module.checkpoint(fn, x, use_reentrant=False, **options)
            y.sum().backward()
            log(inner or len(calls))
            log.gradients(x.grad)

        run()
        run(early_stop=False)
        run(False)
        run(True, early_stop=False)
        run(False, True, early_stop=False)
        run(False, early_stop=True)


@pytest.mark.parametrize("allowed", [False, True])
def test_writes_to_what_a_policy_keeps(allowed: bool) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        module = torch.utils.checkpoint
        contexts = functools.partial(
            module.create_selective_checkpoint_contexts, [torch.ops.aten.sin.default],
            allow_cache_entry_mutation=allowed,
        )  # fmt: skip
        x = torch.tensor([0.5, 1.0], requires_grad=True)
        y = module.checkpoint(
            lambda x: x.sin().mul_(2).cos(), x, use_reentrant=False, context_fn=contexts
        )
        with log.catch():
            y.sum().backward()


def test_the_names_that_policies_see() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        module = torch.utils.checkpoint
        names: list[str] = []

        def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> bool:
            names.append(str(op))
            return False

        contexts = functools.partial(module.create_selective_checkpoint_contexts, policy)
        f = torch.nn.functional
        blocks = [
            lambda x: (x.var(), x.std(0), torch.var_mean(x), x.max(), x.max(0), x.sum(1), x.prod()),
            lambda x: (1 - x, 2**x, x**2, x**x, torch.div(x, 2, rounding_mode="floor"), x == x),
            lambda x: (torch.where(x > 0, x, x), x.masked_fill(x < x, 0), torch.lerp(x, x, 0.5)),
            lambda x: (x.flatten(), x.T, x[:1].squeeze(0), x.narrow(0, 0, 1), x.split([1, 1])),
            lambda x: (x.chunk(2), x.split(1), x.norm(), f.pad(x, (1, 1)), f.group_norm(x, 1)),
            lambda x: (f.conv2d(x[None, None], x[None, None]), f.max_pool2d(x[None], 2)),
        ]
        x = torch.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
        for block in blocks:
            module.checkpoint(block, x, use_reentrant=False, context_fn=contexts)
        log(names)
