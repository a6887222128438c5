"""Arguments that `torch._foreach_*` take and refuse, and gradients at ties, as sessions."""

from __future__ import annotations

from textwrap import dedent

import pytest
from helpers.sessions import compare

START = """
    x = torch.tensor([1.0, -2, 3]); y = torch.tensor([[4.0, 0.5]]); T = [x, y]; U = [x + 1, y - 1]
    f = lambda name: getattr(torch, "_foreach_" + name); c = lambda: [t.clone() for t in T]
    a = torch.tensor([1.0, 2, 3], requires_grad=True); b = torch.full((3,), 2.0, requires_grad=True)
"""

SESSIONS = {
    "tensors as bounds, in place": """
        f("maximum_")(c(), U); f("minimum_")(c(), U); f("clamp_max_")(c(), U)
        f("clamp_min_")(c(), [x[:1], y[:, :1]]); f("clamp_min_")(c(), torch.tensor(2.0))
        f("maximum_")(c(), torch.tensor(2.0)); f("minimum_")(c(), [2, 0.5]); f("maximum_")(c(), x)
    """,
    "gradients at ties": """
        [torch.autograd.grad(f(n)([a], [b])[0].sum(), (a, b)) for n in ("maximum", "minimum")]
        [torch.autograd.grad(f(n)([a], [b])[0].sum(), (a, b)) for n in ("clamp_max", "clamp_min")]
        [torch.autograd.grad(f(n)([a], 2)[0].sum(), a) for n in ("maximum", "clamp_min")]
        r = a * 1; f("maximum_")([r], [b]); torch.autograd.grad(r.sum(), (a, b))
        r = a * 1; f("clamp_max_")([r], [b]); torch.autograd.grad(r.sum(), (a, b))
    """,
    "numbers in tensors, and by name": """
        f("addcmul")(T, U, T, torch.tensor([1.0, 2]))
        f("addcdiv_")(c(), U, T, torch.tensor([1, 2]))
        f("addcmul")(T, U, T, torch.tensor([1.0])); f("addcmul")(T, U, T, torch.tensor(1.0))
        f("addcdiv")(T, U, T, torch.ones(1, 2)); f("addcdiv")(T, U, T, scalars=[1, 2])
        f("addcmul")(T, tensor1=U, tensor2=T, value=3); f("add")(T, scalar=2); f("add")(T, x2=U)
        f("norm")(T, ord=1); f("norm")(T, 1, torch.double); f("norm")(T, dtype=torch.double)
        f("lerp")(T, U, weights=T); f("pow")(2, exponent=T); f("add")(T, torch.tensor(2.0), alpha=3)
    """,
    "what does not suit": """
        f("abs")(T, T); f("abs")(); f("abs")([1.0]); f("abs")([x, None]); f("abs")(tensors=T)
        f("add")(T, torch.ones(2)); f("mul_")(c(), torch.ones(1)); f("add")(T, None)
        f("add")(T, "a")
        f("add")(T, 2, alpha=2); f("add")(T, U, 2); f("add")(T); f("mul_")(T); f("add")([1.0], 1)
        f("add")(x, 1); f("clamp_max")(T, torch.ones(2)); f("pow")(T, torch.ones(2)); f("sub")(T, x)
        f("norm")(T, "fro"); f("norm")([x[:0]], float("inf")); f("max")([x[:0]]); f("zero_")(T, 1)
        f("addcmul")(T, [], []); f("addcmul")(T, U); f("copy_")(T, []); f("copy_")(T, 1)
        f("lerp")(T, U, [0.5]); f("lerp")(T, U[:1], 0.5); f("clone")(T, memory_format=1)
    """,
}


@pytest.mark.parametrize("name", SESSIONS)
def test_session(name: str) -> None:
    compare(dedent(START) + dedent(SESSIONS[name]))
