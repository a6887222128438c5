"""`autograd.functional` and `func` against torch."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
import torch.func
from helpers.sameness import Log, same

import leafax
import leafax.func
from leafax.functional.execution.numpy import evaluator

# torch's forward mode compiles a file of its own at its first use, with its own warning.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.torch.jit.script. is deprecated", "ignore:Attempted to insert a get_attr Node"
)


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> None:
    """torch compiles a file of its own at its first dual tensor, with a warning."""
    with torch.autograd.forward_ad.dual_level():
        torch.autograd.forward_ad.make_dual(torch.ones(1), torch.ones(1))


NAMES = ["vjp", "jvp", "jacobian", "hessian", "vhp", "hvp"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("create_graph", [False, True])
def test_functional(name: str, create_graph: bool) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        fn = getattr(torch.autograd.functional, name)
        x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=create_graph)
        y = torch.tensor([3.0, 4.0], dtype=torch.float64, requires_grad=create_graph)
        v = torch.ones(2, dtype=torch.float64)

        def f(a: Any, b: Any) -> Any:
            out = (a * a * b).exp() / 100
            return out.sum() if name in ("hessian", "vhp", "hvp") else out

        args = () if name in ("jacobian", "hessian") else (v if name == "vjp" else (v, v * 2),)
        found = fn(f, (x, y), *args, create_graph=create_graph)
        flat = []

        def visit(t: Any) -> None:
            if isinstance(t, tuple):
                for u in t:
                    visit(u)
            else:
                flat.append(t)

        visit(found)
        log([t.requires_grad for t in flat])
        log.gradients(*[t.detach() for t in flat])
        if create_graph:
            sum(t.sum() for t in flat).backward()
            log.gradients(x.grad, y.grad)


@pytest.mark.parametrize("name", NAMES)
def test_functional_errors(name: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        fn = getattr(torch.autograd.functional, name)
        x = torch.ones(2)
        for args in (
            (lambda a: a.sum(), 3), (lambda a: a.sum(), (x, 3)), (lambda a: 3, x),
            (lambda a: a * 2, x), (lambda a: (a.sum(), a), x), 
        ):  # fmt: skip
            with log.catch():
                fn(*args)
        if name in ("jacobian", "hessian"):
            for kwargs in ({"strict": True, "vectorize": True}, {"strict": True}):
                with log.catch():
                    fn(lambda a: a.sum(), x, **kwargs)
            with log.catch():
                fn(lambda a, b: a.sum(), (x, x), strict=True)
        else:
            with log.catch():
                fn(lambda a: a.sum(), x, torch.ones(3))
            with log.catch():
                fn(lambda a: a.sum(), x, (torch.ones(2), torch.ones(2)))
            with log.catch():
                fn(lambda a, b: a.sum(), (x, x), None if name == "vjp" else (x, x), strict=True)
            with log.catch():
                fn(lambda a: torch.ones(()), x, None if name == "vjp" else x, strict=True)


CASES: list[Any] = [
    lambda t, x: t.func.grad(lambda x: x.sin().sum())(x),
    lambda t, x: t.func.grad(lambda x, y: (x * y).sum(), argnums=(0, 1))(x, x + 1),
    lambda t, x: t.func.grad(lambda d: (d["a"] * d["b"]).sum())({"a": x, "b": x * 2}),
    lambda t, x: t.func.grad(lambda x: (x.sum() ** 2, x * 3), has_aux=True)(x),
    lambda t, x: t.func.grad_and_value(lambda x: (x**3).sum())(x),
    lambda t, x: t.func.grad(t.func.grad(lambda x: x**3))(x[0]),
    lambda t, x: t.func.vmap(lambda x: x * 2)(x),
    lambda t, x: t.func.vmap(lambda x, y: (x * y).sum(), in_dims=(1, None))(x.expand(2, 3), x[:2]),
    lambda t, x: t.func.vmap(lambda x: (x, x.sum()), out_dims=(1, 0))(x.expand(2, 3)),
    lambda t, x: t.func.vmap(t.func.grad(lambda x: (x**3).sum()))(x.expand(2, 3)),
    lambda t, x: t.func.vmap(t.func.vmap(lambda a, b: a * b, (0, None)), (None, 0))(x, x[:2]),
    lambda t, x: t.func.vmap(lambda d: d["a"] @ d["b"], in_dims=({"a": 0, "b": None},))(
        {"a": x.expand(2, 3), "b": x}
    ),
    lambda t, x: t.func.vjp(lambda x: x.sin(), x)[1](x),
    lambda t, x: t.func.jvp(lambda x: (x.sin(), x.sum()), (x,), (x * 2,)),
    lambda t, x: t.func.jacrev(lambda x: x.sin() * x.sum())(x),
    lambda t, x: t.func.jacfwd(lambda x: {"a": x.sin() * x.sum()})(x),
    lambda t, x: t.func.jacrev(lambda x, y: (x * y, y), argnums=(0, 1))(x, x * 2),
    lambda t, x: t.func.hessian(lambda x: x.prod() ** 2)(x),
    lambda t, x: t.func.linearize(lambda x: x * x.sum(), x)[1](x),
    lambda t, x: t.func.vmap(lambda x: x + t.zeros(2), randomness="same")(x[:2].expand(3, 2)),
    # To the outer transform what the inner one was taken at is a constant, for it has returned.
    lambda t, x: [
        *_nested_vjp(t, x),
        t.func.grad(lambda v: t.func.vjp(t.sin, x)[1](v)[0].sum())(x),
    ],
    lambda t, x: t.func.grad(lambda x: t.func.vjp(t.sin, x)[1](x)[0].sum())(x),
]


def _nested_vjp(t: Any, x: Any) -> list[Any]:
    _, pull = t.func.vjp(t.sin, x)
    y, pull_again = t.func.vjp(lambda v: pull(v)[0], x)
    return [y, pull_again(x)[0]]


def _retaining(x: Any) -> Any:
    x.retain_grad()
    return x.sum()


BAD: list[Any] = [
    lambda t, x: t.func.grad(lambda x: x * 2)(x),
    lambda t, x: t.func.grad(lambda x: 3)(x),
    lambda t, x: t.func.grad(lambda x: x.sum(), argnums=3)(x),
    lambda t, x: t.func.grad(lambda x: x.sum(), argnums=(0, 0))(x),
    lambda t, x: t.func.grad(lambda x: x.sum())(3),
    lambda t, x: t.func.grad(lambda x: x.sum(), has_aux=True)(x),
    lambda t, x: t.func.grad(lambda x: (x.sum(), 3), has_aux=True)(x),
    lambda t, x: t.func.grad(lambda x: x.sum())(t.arange(3)),
    lambda t, x: t.func.vmap(lambda x: x.sum().item())(x.expand(2, 3)),
    lambda t, x: t.func.vmap(lambda x: x if x.sum() > 0 else -x)(x.expand(2, 3)),
    lambda t, x: t.func.vmap(lambda x: x, in_dims=3)(x),
    lambda t, x: t.func.vmap(lambda x: x, in_dims=(0, 0))(x),
    lambda t, x: t.func.vmap(lambda x: x, in_dims=None)(x),
    lambda t, x: t.func.vmap(lambda x: x, in_dims=0.5)(x),
    lambda t, x: t.func.vmap(lambda x, y: x + y)(x, x[:2]),
    lambda t, x: t.func.vmap(lambda x: 3)(x),
    lambda t, x: t.func.vmap(lambda x: x)(),
    lambda t, x: t.func.vmap(lambda x: x)(3),
    lambda t, x: t.func.vmap(lambda x: x)(t.tensor(1.0)),
    lambda t, x: t.func.vmap(lambda x: x, out_dims=5)(x.expand(2, 3)),
    lambda t, x: t.func.vmap(lambda x: x, out_dims=(0, 0))(x),
    lambda t, x: t.func.vmap(lambda x: x + t.rand(2))(x.expand(2, 3)[:, :2]),
    lambda t, x: t.func.vmap(lambda x: x, randomness="foo")(x),
    lambda t, x: t.func.vjp(lambda x: (x, x.sum()), x)[1](x),
    lambda t, x: t.func.jvp(lambda x: x, x, x),
    lambda t, x: t.func.jvp(lambda x: x, (x,), (x[0],)),
    lambda t, x: t.func.jvp(lambda x: x, (x,), (x.long(),)),
    lambda t, x: t.func.jvp(lambda x: _forward_mode(t, x), (x,), (x,)),
    lambda t, x: t.func.jacrev(_looks(t).apply)(x),
    lambda t, x: _pulls_twice(t, x),
    lambda t, x: t.func.grad(_retaining)(x),
    lambda t, x: t.func.vmap(_retaining)(x.expand(2, 3)),
]


def _forward_mode(t: Any, x: Any) -> Any:
    return t.autograd.functional.jacobian(
        lambda x: x.sin(), x, strategy="forward-mode", vectorize=True
    )


def _looks(t: Any) -> Any:
    """A function whose backward looks at a gradient, which `vmap` does not allow."""

    class Looks(t.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(x: Any) -> Any:
            return x * 2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2 if g.sum().item() > 0 else g

    return Looks


def _pulls_twice(t: Any, x: Any) -> Any:
    pull = t.func.vjp(lambda x: x**3, x)[1]
    pull(x, retain_graph=False)
    return pull(x)


def _flat(x: Any) -> list[Any]:
    if isinstance(x, dict):
        return [y for k in sorted(x) for y in _flat(x[k])]
    if isinstance(x, (tuple, list)):
        return [z for y in x for z in _flat(y)]
    return [x]


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_func(case: Any, requires_grad: bool) -> None:
    def run(lib: Any) -> list[Any]:
        x = lib.tensor([0.5, 1.0, 2.0], requires_grad=requires_grad)
        found = _flat(case(lib, x))
        shown = [(t.requires_grad, t.detach().numpy()) for t in found]
        if any(t.requires_grad for t in found):
            sum(t.sum() for t in found if t.requires_grad).backward()
            shown.append((True, x.grad.numpy()))
        return shown

    theirs = run(torch)
    for _ in range(2):
        for (a, x), (b, y) in zip(run(leafax), theirs, strict=True):
            assert a == b
            np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", BAD)
def test_func_errors(case: Any) -> None:
    texts = []
    for lib in (torch, leafax):
        with pytest.raises(Exception) as info:  # noqa: B017, PT011
            case(lib, lib.tensor([0.5, 1.0, 2.0]))
        texts.append((info.type.__name__, str(info.value)))
    assert texts[1] == texts[0]


def test_forms_of_jacobians() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        func = torch.func
        x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
        log.gradients(*func.jacfwd(torch.mul, argnums=None)(x, y))
        aux = lambda x: (x * 2, (x, {"a": x.sum(), "b": [x * x]}))  # noqa: E731
        for jacobian in (func.jacfwd, func.jacrev):
            found, (same_x, others) = jacobian(aux, has_aux=True)(x)
            log(found.tolist(), same_x.tolist(), list(others), others["b"][0].tolist())
        # A row at a time needs no `vmap`.
        log.gradients(func.jacrev(_looks(torch).apply, chunk_size=1)(x))
        pair = func.jacrev(lambda x, y: (x * y, x.sum()), argnums=(0, 1), chunk_size=1)(x, y)
        log([[t.tolist() for t in row] for row in pair])


def test_what_a_pull_keeps_and_tells() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([1.0, 2.0])
        for create_graph in (None, True, False):
            pull = torch.func.vjp(lambda x: (x**3).sum(), x)[1]
            g = torch.tensor(1.0, requires_grad=True)
            log(pull(g, create_graph=create_graph)[0].requires_grad)
        pull = torch.func.vjp(lambda x: x + 3, x)[1]  # nothing was saved, nothing is missed
        pull(x, retain_graph=False)
        log(pull(x)[0].tolist())
        w = x.clone().requires_grad_()
        out, pull = torch.func.vjp(lambda x: (x**3).sum(), w)
        pull(torch.tensor(1.0), retain_graph=False)
        out.backward()  # the graph outside is another
        log.gradients(w.grad)


def test_hessians_of_products_require_grad() -> None:
    """PyTorch's formulas read the operands, though the derivative is constant."""

    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        for f in (
            lambda x: (x * x).sum(), lambda x: x.pow(2).sum(), lambda x: x @ x, lambda x: x.var(),
            lambda x: (x * 3).sum(), lambda x: (x + x).sum(),
        ):  # fmt: skip
            found = torch.func.hessian(f)(x)
            log(found.requires_grad, found.tolist())


def _duals_made_inside_vmap(t: Any) -> list[str]:
    fw, vmap = t.autograd.forward_ad, t.func.vmap
    x, u = t.arange(6.0).reshape(2, 3), t.ones(3)
    found = []
    with fw.dual_level():
        for f in (
            lambda x: fw.make_dual(x, x), lambda x: fw.make_dual(u, x),
            lambda x: fw.unpack_dual(x).primal,
        ):  # fmt: skip
            with pytest.raises(RuntimeError) as info:
                vmap(f)(x)
            found.append(str(info.value))
        found.append(vmap(lambda x: fw.unpack_dual(fw.make_dual(u, u)).tangent + x)(x).tolist())
    with pytest.raises(RuntimeError) as info:
        vmap(lambda x: _forward_mode(t, x))(x)
    return [*found, str(info.value)]


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_duals_made_inside_vmap() -> None:
    assert _duals_made_inside_vmap(leafax) == _duals_made_inside_vmap(torch)


def test_duals_of_batches_that_lie_in_another_order() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        func = torch.func

        def write(x: Any, y: Any) -> Any:
            part = x[0, ::2]
            x.copy_(y)
            return x, part

        x = torch.arange(24.0).reshape(2, 2, 6)
        t = torch.arange(24.0, 48.0).reshape(2, 6, 2)
        push = lambda x, t, y, s: func.jvp(write, (x, y), (t, s))  # noqa: E731
        outs, tangents = func.vmap(push, in_dims=(1, 2, 1, 1))(x, t, x * 2, x + 1)
        log([o.tolist() for o in (*outs, *tangents)], x.tolist(), t.tolist())


def test_vmap_randomness() -> None:
    x = leafax.ones(4, 3)
    same_for_all = leafax.func.vmap(lambda x: leafax.rand(3), randomness="same")(x)
    assert (same_for_all == same_for_all[0]).all()
    rows = leafax.func.vmap(lambda x: leafax.rand(3), randomness="different")(x)
    assert len({float(r[0]) for r in rows}) == 4


@pytest.mark.parametrize("name", ["jacobian", "hessian"])
def test_forward_strategy(name: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        fn = getattr(torch.autograd.functional, name)
        x = torch.tensor([1.0, 2.0], dtype=torch.float64)
        y = torch.tensor([3.0, 4.0], dtype=torch.float64)
        option = {"jacobian": "strategy", "hessian": "outer_jacobian_strategy"}[name]

        def f(a: Any, b: Any) -> Any:
            return (a * a * b).sum() if name == "hessian" else (a * a * b, b.sum())

        for vectorize in (False, True):
            for strict in (False, True):
                options = {option: "forward-mode", "vectorize": vectorize, "strict": strict}
                with log.catch():
                    found = fn(f, (x, y), **options)
                    log([[type(row).__name__, [t.detach() for t in row]] for row in found])
        log.attempt(lambda: fn(f, (x, y), **{option: "forward-mode", "create_graph": True}))
        log.attempt(lambda: fn(f, (x, y), **{option: "other"}))


def test_what_a_gradient_does_not_depend_on() -> None:
    """Gradients of one op are a node an input: the one of `y` does not lead to `y`."""

    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = torch.tensor([3.0, 4.0], requires_grad=True)
        gx, gy = torch.autograd.grad((x * y).sum(), (x, y), create_graph=True)
        log.attempt(lambda: torch.autograd.grad(gy.sum(), y, retain_graph=True))
        log.attempt(lambda: torch.autograd.grad(gx.sum(), x, allow_unused=True, retain_graph=True))
        log.gradients(*torch.autograd.grad(gx.sum(), y))
        (g,) = torch.autograd.grad((x + y).sum(), x, create_graph=True)
        log(g.requires_grad)
        log.attempt(
            lambda: torch.autograd.functional.hessian(
                lambda a, b: (a * a * b).sum(), (x, y), strict=True
            )
        )


def test_transforms_refuse_dtypes_and_obey_no_grad() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        func = torch.func
        x, z = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([1 + 2j])
        for jac in (func.jacrev, func.jacfwd):
            log.attempt(jac(lambda x: x.sin()), z)
            log.attempt(jac(lambda x: torch.complex(x, x)), x.detach())
            log.attempt(jac(lambda x, y: x * 2), x.detach(), z)
        log.attempt(func.jacfwd(lambda x: x), torch.arange(2))
        with torch.no_grad():
            log(func.grad(lambda x: x.sin().sum())(x).requires_grad)
            value, pull = func.vjp(torch.sin, x)
            log(value.requires_grad, pull(x)[0].requires_grad)
            log(func.hessian(lambda x: (x**3).sum())(x))

        def inner(x: Any) -> Any:
            with torch.no_grad():
                return func.grad(lambda x: x * x)(x)

        log(func.grad(inner)(torch.tensor(2.0)))


def test_transforms_in_inference_mode() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        func = torch.func
        x = torch.tensor([1.0, 2.0, 3.0])
        seen: list[Any] = []

        def total(x: Any) -> Any:
            y = x**2
            seen.append((torch.is_inference_mode_enabled(), torch.is_grad_enabled()))
            seen.append((x.is_inference(), y.is_inference(), torch.ones(1).is_inference()))
            return y.sum()

        def inside(x: Any) -> Any:
            with torch.inference_mode():
                c = x**2
            return (x - c).sum()

        with torch.inference_mode():
            own, one = torch.tensor([1.0, 2.0]), torch.tensor(1.0)
            found = [func.grad(total)(x), func.grad(total)(own), func.vjp(total, x)[1](one)[0]]
            found += [*func.jvp(total, (x,), (x,)), func.jacrev(lambda x: x**2)(x)]
            found += [func.grad(func.grad(lambda x: x**3))(one), func.grad(inside)(x)]
            found += [func.grad(lambda x: func.vmap(lambda x: x**2)(x).sum())(x)]
            log(seen, [t.is_inference() for t in found[:4]], torch.is_inference_mode_enabled())
            log([t.tolist() for t in found])
            log(func.vmap(func.grad(total))(torch.ones(2, 3)).tolist())
            log(func.vmap(torch.sin)(x).is_inference())


@pytest.mark.parametrize("name", ["jacobian", "vjp", "jvp", "hvp", "vhp", "hessian"])
def test_zeros_of_inference_mode(name: str) -> None:
    """Results that do not depend on an input are inference tensors, too."""

    @same
    def program(torch: Any, log: Any) -> None:
        with torch.inference_mode():
            x = torch.ones(2)
            given = (x,) if name in ("jacobian", "hessian") else (x, x)
            f = getattr(torch.autograd.functional, name)
            for of in (lambda x: torch.ones(2), lambda x: x.sum()):
                with log.catch():
                    found = f(of, *given)
                    log(*found, *[t.is_inference() for t in found])


def test_transforms_of_inference_tensors() -> None:
    """Forward mode gave zeros: autograd is never asked of an inference tensor."""

    @same
    def program(torch: Any, log: Log) -> Any:
        func = torch.func
        with torch.inference_mode():
            x = torch.tensor([1.0, 2.0, 3.0])
        for scope in (torch.inference_mode, torch.enable_grad):
            for f in (lambda x: x**3, lambda x: x.clone().mul_(x), lambda x: (x * x).sum()):
                with scope():
                    found = [*func.jvp(f, (x,), (torch.ones(3),)), func.jacfwd(f)(x)]
                    found += [func.jacrev(f)(x), func.hessian(f)(x), func.vmap(func.grad(f))(x)]
                    found += [func.jacfwd(func.jacfwd(f))(x)]
                log([(t.tolist(), t.is_inference(), t.requires_grad) for t in found])


def test_functions_in_transforms() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        func, names = torch.func, []

        class Same(torch.autograd.Function):
            saves, dirty = "backward", False

            @staticmethod
            def forward(x: Any) -> Any:
                return x

            @staticmethod
            def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                if Same.dirty:
                    ctx.mark_dirty(inputs[0])
                if Same.saves:
                    getattr(ctx, f"save_for_{Same.saves}")(output)

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                return grad

        class Keyword(torch.autograd.Function):
            @staticmethod
            def forward(x: Any, *, y: Any) -> Any:
                return x + y

            @staticmethod
            def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                pass

            @staticmethod
            def vmap(info: Any, in_dims: Any, x: Any, *, y: Any) -> Any:
                return x + y, 0

        def call(x: Any) -> Any:
            y = Same.apply(x.clone())
            names.append((type(y.grad_fn).__name__, y.grad_fn.name()))
            return y

        x = torch.tensor(2.0, requires_grad=True)
        for Same.saves, Same.dirty in (("backward", False), ("forward", False), ("", False),
                                       ("backward", True)):  # fmt: skip
            with log.catch():
                log(func.grad(call)(x).item())
            with log.catch():
                Same.apply(x.detach().clone())
        log(names)
        with log.catch():
            func.vmap(Keyword.apply)(torch.ones(2), y=torch.ones(2))
        log(func.jacfwd(_writes, argnums=(1,))(torch.ones(3), torch.ones(2)))
        basis = torch.autograd.functional._construct_standard_basis_for
        log(basis((torch.ones(2), torch.ones(1, 2, dtype=torch.float64)), (2, 2)))


def _writes(x: Any, y: Any) -> Any:
    """Writes something differentiated into a part of what is not."""
    x[:2] = y * 2
    return x * 3


def test_a_jacobian_by_forward_mode_keeps_its_graph() -> None:
    """PyTorch detaches neither the inputs nor the result, and leaves grad mode as it is."""

    @same
    def program(torch: Any, log: Log) -> Any:
        jacobian = torch.autograd.functional.jacobian
        x = torch.tensor([0.75, 1.0], dtype=torch.float64, requires_grad=True)
        y = torch.tensor([3.0, 4.0], dtype=torch.float64, requires_grad=True)
        for given in (x, x.detach()):
            for mode in (torch.enable_grad, torch.no_grad):
                with mode():
                    j = jacobian(
                        lambda x: (x**3 * y).sum(), given, vectorize=True, strategy="forward-mode"
                    )
                log.gradients(j.detach())
                log(j.requires_grad)
                if j.requires_grad:
                    log.gradients(*torch.autograd.grad(j.pow(2).sum(), y))


def test_gradients_of_relu_do_not_depend_on_its_result_a_second_time() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64, requires_grad=True)
        v = torch.ones(3, dtype=torch.float64, requires_grad=True)
        (g,) = torch.autograd.grad(x.relu(), x, v, create_graph=True)
        log(*torch.autograd.grad(g.sum(), (x, v), create_graph=True), g.grad_fn)
        hvp = torch.autograd.functional.hvp
        for strict in (False, True):
            log.attempt(hvp, lambda x: x.relu().sum(), x, v, create_graph=True, strict=strict)


@pytest.mark.parametrize("vectorize", [False, True])
@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
@pytest.mark.parametrize("f", ["view_as_complex(x)", "z * z", "z.abs()", "(z.real, x * 2)", "None"])
def test_jacobians_of_complex_numbers(f: str, strategy: str, vectorize: bool) -> None:
    """`vectorize` gives the engine its gradients, so outputs need not be real."""

    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([[1.0, 2.0], [-3.0, 0.5]], dtype=torch.float64)
        z = torch.tensor([1 + 2j, -0.5j])
        view = torch.view_as_complex
        with log.catch():
            rows = torch.autograd.functional.jacobian(
                lambda x, z: eval(f, {"x": x, "z": z, "view_as_complex": view}),
                (x, z), vectorize=vectorize, strategy=strategy,
            )  # fmt: skip
            for row in rows if isinstance(rows[0], (list, tuple)) else [rows]:
                log.gradients(*row)


def test_jacobians_of_other_lengths_trace_little() -> None:
    """Each row is the same calls: those of an element were others for each number of elements,
    and to trace their gradients took 8 s at a vector of 40."""
    t = np.linspace(0, 1, 60)

    def rows(n: int) -> Any:
        at = leafax.from_numpy(t[:n])
        p = leafax.tensor([1.5, 0.5, 2.0], dtype=leafax.float64)
        f = leafax.autograd.functional.jacobian
        return f(lambda p: p[0] * leafax.exp(-p[1] * at) + p[2], p).numpy()

    for n in (20, 22, 25, 29):
        rows(n)
    with mock.patch.object(evaluator, "_for_these", wraps=evaluator._for_these) as traced:
        found = rows(41)
    e = np.exp(-0.5 * t[:41])
    np.testing.assert_allclose(found, np.stack([e, -1.5 * t[:41] * e, np.ones(41)], 1))
    assert traced.call_count < 41


def test_gradients_of_rows_keep_the_sign_of_zero() -> None:
    found = []
    for lib in (torch, leafax):
        x = lib.ones(3, 2, requires_grad=True)
        x.unbind(0)[1].backward(lib.tensor([-0.0, 2.0]))
        found.append(np.signbit(x.grad.numpy()))
    np.testing.assert_array_equal(*found)
