"""`gradcheck` and `gradgradcheck` against torch: complex functions, forward mode, wrong rules."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.sameness import Log, assert_equal, run

import leafax
from leafax.autograd._gradcheck.jacobians import compute_analytical

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")

ALL = {"check_forward_ad": True, "check_batched_grad": True, "check_grad_dtypes": True}
FUNCTIONS: dict[str, Any] = {
    "real": lambda t, x, z: (x.sin() * x, x.sum()),
    "to complex": lambda t, x, z: t.complex(x, x * 2).exp(),
    "complex": lambda t, x, z: z * z.conj() * z + x,
    "to real": lambda t, x, z: (z.abs() * x, z.real),
    "constant": lambda t, x, z: t.ones(2),
}


def both(program: Any) -> None:
    import torch

    def plain(lines: list[Any]) -> list[Any]:
        return [x for x in lines if "torch.jit" not in str(x)]

    assert_equal(plain(run(program, leafax)), plain(run(program, torch)), "gradcheck")


def numbers(torch: Any) -> tuple[Any, Any]:
    x = torch.tensor([0.5, 1.5], dtype=torch.float64, requires_grad=True)
    z = torch.tensor([1 + 2j, 0.5 - 1j], dtype=torch.complex128, requires_grad=True)
    return x, z


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_right(name: str) -> None:
    def program(torch: Any, log: Log) -> Any:
        x, z = numbers(torch)
        check = torch.autograd.gradcheck
        f = FUNCTIONS[name]
        log.attempt(lambda: check(lambda x, z: f(torch, x, z), (x, z), **ALL))
        if name != "constant":
            args = (x, z) if name in ("complex", "to real") else (x,)
            log.attempt(
                lambda: torch.autograd.gradgradcheck(
                    lambda *a: f(torch, a[0], a[-1]), args, check_fwd_over_rev=True
                )
            )

    both(program)


def wrong(torch: Any, **members: Any) -> Any:
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 2 * x.conj()

    def jvp(ctx: Any, t: Any) -> Any:
        (x,) = ctx.saved_tensors
        return t * 2 * x

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x * x

    members = {"forward": forward, "backward": backward, "jvp": jvp} | members
    made = {k: staticmethod(f) for k, f in members.items()}
    return type("Square", (torch.autograd.Function,), made).apply


def undefined(ctx: Any, g: Any) -> Any:
    ctx.saved_tensors[0]
    return g * 2 * ctx.saved_tensors[0].conj() if g is not None and (g != 0).any() else g + 1


WRONG: dict[str, Any] = {
    "nothing": {},
    "backward": {"backward": lambda ctx, g: g * 3},
    "forward": {"jvp": lambda ctx, t: t * 3},
    "conjugate": {"backward": lambda ctx, g: g * 2 * ctx.saved_tensors[0]},
    "zeros": {"backward": undefined},
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name: str) -> None:
    def program(torch: Any, log: Log) -> Any:
        f = wrong(torch, **WRONG[name])
        for t in numbers(torch):
            for options in ({}, {"check_forward_ad": True}):
                try:
                    log(torch.autograd.gradcheck(f, t, **options))
                except RuntimeError as e:
                    log(type(e).__name__, str(e).split("\n")[0].rstrip())
            log(torch.autograd.gradcheck(f, t, raise_exception=False, check_forward_ad=True))

    both(program)


def test_arguments() -> None:
    def program(torch: Any, log: Log) -> Any:
        x, _ = numbers(torch)
        check = torch.autograd.gradcheck
        log.attempt(check, torch.sin, x.detach())
        log.attempt(lambda: check(torch.sin, x, check_backward_ad=False))
        log.attempt(
            lambda: check(
                torch.sin, x, check_backward_ad=False, check_forward_ad=True,
                check_batched_grad=True,
            )
        )  # fmt: skip
        log.attempt(lambda: check(torch.sin, x, check_batched_forward_grad=True))
        log(check(torch.sin, x.float().detach().requires_grad_(), raise_exception=False))
        log.attempt(check, torch.sin, x[:1].expand(2).detach().requires_grad_())
        log.attempt(lambda: torch.autograd.gradgradcheck(torch.sin, x, check_rev_over_rev=False))
        log(check(lambda x: x.sin(), x, check_forward_ad=True, check_batched_forward_grad=True))

    both(program)


def test_functions_that_are_not_handed_what_they_read() -> None:
    """Differences are taken in the memory of the inputs."""

    def program(torch: Any, log: Log) -> Any:
        x, _ = numbers(torch)
        z = torch.tensor([1 + 2j], dtype=torch.complex128, requires_grad=True)
        check, version = torch.autograd.gradcheck, x._version
        whole = torch.arange(4.0, dtype=torch.float64)
        view = whole[1:3].requires_grad_()
        for f, args in (
            (lambda a: x * x * x, (x,)), (lambda a, b: a * x, (x, x)), (lambda a: z * z.conj(), z),
            (lambda a: whole[2:] * view[1], view),
        ):  # fmt: skip
            log.attempt(lambda f=f, args=args: check(f, args))
        log.attempt(lambda: torch.autograd.gradgradcheck(lambda a: x**3, x))
        log(x, z, whole, x._version - version)

    both(program)


def test_inputs_are_moved_where_they_are() -> None:
    def program(torch: Any, log: Log) -> Any:
        x, z = numbers(torch)
        check = torch.autograd.gradcheck
        for fast in (False, True):
            log(check(lambda *ignored: x.sin() * z.abs(), (x, z), fast_mode=fast))
        f = wrong(torch, backward=lambda ctx, g: g * 3)
        log(check(lambda _: f(x), x, raise_exception=False), x._version, x, z)

        def fails(y: Any) -> Any:
            if (y != 0.5).any() and (y != 1.5).any():
                raise KeyError("moved")
            return y * 2

        log.attempt(check, fails, x[:1].detach().requires_grad_())

        log.attempt(check, lambda y: torch.cat([y, y]) if y[0] >= 0.5 else y, x)
        log.attempt(check, lambda y: y.float() if y[0] >= 0.5 else y, x)

    both(program)


def test_the_same_backward_is_the_same_program() -> None:
    x = leafax.rand(3, 3, dtype=leafax.float64, requires_grad=True)
    out = x.exp().sum(0).sin()
    leafax.explain(clear=True)
    compute_analytical((x,), out, 0.0, False)
    forward, *backwards = leafax.explain()
    assert len(backwards) in (2, 3)  # three if they rounded differently: one went op by op
    assert len({run.nodes for run in backwards}) == 1 and backwards[-1].how != "op by op"


@pytest.mark.parametrize("name", ["right", *WRONG])
def test_fast_mode(name: str) -> None:
    def program(torch: Any, log: Log) -> Any:
        x, z = numbers(torch)
        check = torch.autograd.gradcheck
        if name == "right":
            for f in FUNCTIONS.values():
                log(check(lambda x, z, f=f: f(torch, x, z), (x, z), fast_mode=True, **ALL))
            second = torch.autograd.gradgradcheck
            log(second(lambda x: x.sin() * x, x, fast_mode=True, check_fwd_over_rev=True))
            log.attempt(lambda: check(lambda y: y.detach() * 2, x, fast_mode=True))
            log.attempt(
                lambda: check(lambda y: torch.cat([y] * (1 + int(y[0] >= 0.5))), x, fast_mode=True)
            )
            return
        f = wrong(torch, **WRONG[name])
        for t in (x, z):
            for options in ({}, {"check_forward_ad": True}, {"atol": 100.0}):
                try:
                    log(check(f, t, fast_mode=True, **options))
                except RuntimeError as e:
                    lines = str(e).split("\n")
                    advice = lines.index("Numerical:") if "Numerical:" in lines else None
                    log(lines[0].rstrip(), [line.split(":")[0] for line in lines[1:3]])
                    log([line.rstrip() for line in lines[3:advice]], lines[-1][:50])

    both(program)


def test_fast_mode_says_when_element_by_element_all_is_well() -> None:
    import torch

    text: list[Any] = []
    for lib in (torch, leafax):
        x = lib.tensor([0.5, -0.5] * 10, dtype=lib.float64, requires_grad=True)
        f = wrong(lib, backward=lambda ctx, g: g * (2 * ctx.saved_tensors[0] + 1e-4))
        assert lib.autograd.gradcheck(lambda x, f=f: f(x).sum(), x, rtol=2e-4, atol=0)
        with pytest.raises(RuntimeError) as e:  # most of the Jacobian cancels, 1e-4 does not
            lib.autograd.gradcheck(lambda x, f=f: f(x).sum(), x, rtol=2e-4, atol=0, fast_mode=True)
        text.append(str(e.value))
    assert text[0].partition("in slow mode:")[2] == text[1].partition("in slow mode:")[2] != ""


def test_single_jacobians() -> None:
    def program(torch: Any, log: Log) -> Any:
        import importlib

        module = importlib.import_module(torch.__name__ + ".autograd.gradcheck")
        x, z = numbers(torch)
        y = (x * 3).detach().requires_grad_()
        by_difference, by_backward = module.get_numerical_jacobian, module.get_analytical_jacobian

        def f(args: Any) -> Any:
            return args[0].sin() * args[1], args[0]

        log([t.round(decimals=4) for t in by_difference(f, (x, y))])
        log([t.round(decimals=4) for t in by_difference(f, (x, y), target=y, eps=1e-6)])
        log([t.round(decimals=4) for t in by_difference(lambda a: a[0].abs(), (z,), eps=1e-6)])
        log.attempt(by_difference, lambda a: a[0] * 2, (z,))
        log.attempt(by_difference, f, (x, y), grad_out=2.0)
        one = module.get_numerical_jacobian_wrt_specific_input
        log([t.round(decimals=4) for t in one(lambda *a: f(a), 1, (x, y), f((x, y)), 1e-6)])
        log.attempt(one, lambda *a: f(a), 0, (x.detach(), y), f((x, y)), 1e-6)
        log(by_backward((x, y), f((x, y))[0]))
        log.attempt(by_backward, (x, y), f((x, y))[0], grad_out=0.5)
        log.attempt(by_backward, (z,), z * 2)
        times = iter(range(1, 100))
        f = wrong(torch, backward=lambda ctx, g: g * next(times))
        log(by_backward((x,), f(x).sum()), by_backward((x,), f(x).sum(), nondet_tol=100.0))

    both(program)


def test_other_inputs_have_no_gradients_where_tangents_are_batched() -> None:
    def program(torch: Any, log: Log) -> Any:
        x, _ = numbers(torch)
        seen = []

        def f(x: Any, y: Any) -> Any:
            seen.append((x.requires_grad, y.requires_grad))
            return x * y

        options = {"check_undefined_grad": False, "check_batched_forward_grad": True}
        y = (x * 2).detach().requires_grad_()
        torch.autograd.gradcheck(
            f, (x, y), check_forward_ad=True, check_backward_ad=False, **options
        )
        log(seen[-6:])

    both(program)
