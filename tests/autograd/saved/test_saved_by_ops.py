"""Tensors that ops save: writes to them raise, hooks may change them, nodes show them."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.sameness import Log, same

import leafax

OPERANDS = """
x = torch.arange(6, dtype=torch.float64).reshape(2, 3).mul(0.3).add(0.1).requires_grad_() * 1
B = torch.arange(9.0).double().reshape(3, 3).sin() + 3 * torch.eye(3).double()
B = B.requires_grad_() * 1
q = torch.ones(3, 2, dtype=torch.float64).requires_grad_() * 1
LU, pivots = torch.linalg.lu_factor(B.detach())
LU = LU.requires_grad_() * 1
F = torch.nn.functional
"""

# An op, and what is written to after it: an operand, "r" for its result, a number for one of them.
WRITES = [
    ("F.pad(x, (1, 1), mode='reflect')", "x r"),
    ("F.pad(x, (1, 1), mode='replicate')", "x r"),
    ("F.pad(x[None], (1, 1, 1, 1), mode='reflect')", "x"),
    ("F.pad(x, (1, 1))", "x r"),
    ("torch.special.i0e(x)", "x r"),
    ("torch.special.i1(x)", "x r"),
    ("torch.special.i1e(x)", "x r"),
    ("torch.special.ndtri(x.sigmoid())", "x r"),
    ("torch.special.log_ndtr(x)", "x r"),
    ("torch.linalg.slogdet(B)", "B 0 1"),
    ("torch.slogdet(B)", "B 0 1"),
    ("torch.linalg.solve_ex(B, x.t())", "B 0"),
    ("torch.lu_solve(q, LU, pivots)", "q LU r"),
    ("torch.triangular_solve(q, B)", "q B 0"),
    ("torch.linalg.matrix_norm(B)", "B r"),
    ("torch.linalg.matrix_norm(B, 'nuc')", "B r"),
    ("torch.linalg.matrix_norm(B, 1)", "B r"),
]


@pytest.mark.quick(11)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("call", "written"), [(call, w) for call, names in WRITES for w in names.split()]
)
def test_a_write_to_what_an_op_saved_raises(call: str, written: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        space: dict[str, Any] = {"torch": torch}
        exec(OPERANDS, space)
        made = eval(call, space)
        outs = list(made) if isinstance(made, tuple) else [made]
        if written.isdigit() or written == "r":
            target = outs[int(written) if written.isdigit() else 0]
        else:
            target = space[written]
        total = sum(out.sum() for out in outs if out.requires_grad)
        with torch.no_grad():
            target.add_(1)
        log.attempt(total.backward)


# What hooks unpack is what the gradient is made of, also where it is not what was packed.
BY_RESULT = [
    "torch.linalg.inv(B)", "torch.inverse(B)", "torch.linalg.inv_ex(B)[0]",
    "torch.linalg.cholesky(B @ B.mT)", "torch.linalg.cholesky(B @ B.mT, upper=True)",
    "torch.linalg.cholesky_ex(B @ B.mT)[0]", "torch.special.i0e(x)", "torch.special.i1(x)",
    "torch.special.i1e(x)", "torch.special.ndtri(x.sigmoid())", "torch.special.log_ndtr(x)",
]  # fmt: skip


@pytest.mark.quick(7)
@pytest.mark.parametrize("changed", ["t", "t * 1.25", "t.tril() + 0.5"])
@pytest.mark.parametrize("call", BY_RESULT)
def test_gradients_of_what_hooks_unpack(call: str, changed: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        space: dict[str, Any] = {"torch": torch}
        exec(OPERANDS, space)
        hooks = torch.autograd.graph.saved_tensors_hooks
        with hooks(lambda t: t, lambda t: eval(changed, {"t": t})):
            out = eval(call, space)
        weights = torch.linspace(-1, 2, out.numel(), dtype=torch.float64).reshape(out.shape)
        operand = space["B" if "B" in call else "x"]
        operand.retain_grad()
        (out * weights).sum().backward()
        log(operand.grad.clone())


@pytest.mark.quick(4)
@pytest.mark.parametrize("hooked", [False, True])
@pytest.mark.parametrize("call", ["x.logcumsumexp(1)", *BY_RESULT])
def test_second_derivatives_under_hooks(call: str, hooked: bool) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        space: dict[str, Any] = {"torch": torch}
        exec(OPERANDS, space)
        operand = space["B" if "B" in call else "x"]
        if hooked:
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                out = eval(call, space)
        else:
            out = eval(call, space)
        weights = torch.linspace(0.5, 2, out.numel(), dtype=torch.float64).reshape(out.shape)
        first = torch.autograd.grad((out * weights).sum(), operand, create_graph=True)[0]
        second = torch.autograd.grad((first * operand.detach().sin()).sum(), operand)[0]
        log([first.detach().clone(), second.clone()])


@pytest.mark.parametrize(
    "call",
    [
        "torch.native_layer_norm(x, (3,), None, None, 1e-5)",
        "torch.linalg.lstsq(B, q)",
        "torch.linalg.lu(B)",
        "torch.linalg.slogdet(B)",
    ],
)
def test_hooks_change_no_flags(call: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        space: dict[str, Any] = {"torch": torch}
        exec(OPERANDS, space)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            outs = eval(call, space)
        log([[t.requires_grad, t.grad_fn is None] for t in outs])


REFUSED = [
    "torch.dot(i, b)", "torch.mm(i, b)", "b * j", "torch.bmm(i, b)", "torch.linalg.solve(i, b)",
    "b.gather(3, i)", "b.pow(j)", "b.dist(j)", "torch.matmul(i, b)", "b.lerp(j, i)",
    "torch.nn.functional.linear(i, b[:, :2])", "torch.vdot(i, b)", "b.scatter(0, i, j)",
    "b.prod(4)", "b.cumprod(7)",
]  # fmt: skip


@pytest.mark.parametrize("call", REFUSED)
def test_inference_tensors_are_refused_before_shapes_under_hooks(call: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        b = torch.ones(2, 3, requires_grad=True)
        with torch.inference_mode():
            i, j = torch.ones(2, 3), torch.ones(4)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            log.attempt(eval, call, {"torch": torch, "b": b, "i": i, "j": j})


@pytest.mark.parametrize("call", ["x.exp()", "x * x", "x.sgn()", "x * 2"])
def test_inference_leaves_ask_nobody_under_hooks(call: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        with torch.inference_mode():
            x = torch.tensor([1.5, -0.5, 2.0], requires_grad=True)
        log(eval(call, {"x": x}))
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            log.attempt(eval, call, {"x": x})


UNGIVEN = [
    "torch.linalg.vector_norm(x, 0)", "torch.linalg.norm(x.flatten(), 0)", "x.norm(0)",
    "x.norm(0, 1)", "torch.norm(x, 0.0)", "torch.dist(x, y.detach(), 0)", "torch.dist(x, y, 0)",
    "torch.nn.functional.pairwise_distance(x, y, p=0)", "torch.linalg.vector_norm(e, 0, dim=1)",
    "torch.linalg.householder_product(m, tau)", "torch.ormqr(m, tau, m)", "x.norm(1)",
    "torch.cdist(x, y, p=0.0)",
]  # fmt: skip


@pytest.mark.quick(6)
@pytest.mark.parametrize("hooked", [False, True])
@pytest.mark.parametrize("call", UNGIVEN)
def test_what_gets_no_gradient(call: str, hooked: bool) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([[1.0, 2.0], [3.0, 0.0]], dtype=torch.float64, requires_grad=True)
        y = torch.ones(2, 2, dtype=torch.float64, requires_grad=True)
        e = torch.ones(0, 2, dtype=torch.float64, requires_grad=True)
        m = torch.ones(0, 3, 3, dtype=torch.float64, requires_grad=True)
        tau = torch.ones(0, 3, dtype=torch.float64, requires_grad=True)
        space = {"torch": torch, "x": x, "y": y, "e": e, "m": m, "tau": tau}
        hooks = torch.autograd.graph.saved_tensors_hooks

        def loss() -> Any:
            if not hooked:
                return eval(call, space).sum()
            with hooks(lambda t: t, lambda t: t):
                return eval(call, space).sum()

        def given(keep: bool) -> list[Any]:
            leaves = (x, y, e, m, tau)
            found = torch.autograd.grad(loss(), leaves, allow_unused=True, create_graph=keep)
            return [None if g is None else g.tolist() for g in found]

        for keep in (False, True):
            log.attempt(given, keep)
        log.attempt(torch.autograd.grad, loss(), x)
        log.attempt(loss().backward)
        log([None if t.grad is None else t.grad.tolist() for t in (x, y, e, m, tau)])


def test_what_cat_leaves_out_gets_a_gradient_of_its_shape() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        e = torch.zeros(0, dtype=torch.float64, requires_grad=True)
        for shape, dim in (((2, 3), 0), ((2, 3), 1), ((0, 3), 1), ((2,), 0)):
            x = torch.ones(shape, dtype=torch.float64, requires_grad=True)
            for tensors in ((x, e), (e, x)):
                for keep in (False, True):
                    out = torch.cat(tensors, dim)
                    found = torch.autograd.grad(out.sum(), (x, e), create_graph=keep)
                    log([[list(g.shape), g.tolist()] for g in found])


def test_gathering_by_an_empty_index_of_any_dtype() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.ones(3, dtype=torch.float64, requires_grad=True)
        for dtype in (torch.uint8, torch.int64):
            out = x.gather(0, torch.zeros(0, dtype=dtype))
            log(torch.autograd.grad(out.sum(), x, create_graph=True)[0].tolist())
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                out = x.gather(0, torch.zeros(0, dtype=dtype))
            log(torch.autograd.grad(out.sum(), x)[0].tolist())


def test_to_look_at_what_was_saved_leaves_its_version() -> None:
    """A look at a saved tensor that nobody holds any more made a later backward raise."""

    @same
    def program(torch: Any, log: Log) -> Any:
        for source in ("v.clone()", "torch.ones(3).double() * 1"):
            x = torch.ones(3, dtype=torch.float64, requires_grad=True)
            v = torch.ones(3, dtype=torch.float64, requires_grad=True) * 1
            w = eval(source, {"torch": torch, "v": v})
            with torch.no_grad():
                w.clamp_(min=0.1)
            y = x / w
            del w
            log(y.grad_fn._saved_other.tolist())
            log([y.grad_fn._saved_other._version, y.grad_fn._saved_other.tolist()])
            y.sum().backward()
            log(x.grad)


ATTRIBUTES = [
    ("x[0].diag()", "offset dim1 dim2"), ("B.diag(1)", "offset dim1 dim2"),
    ("x.fliplr()", "dims"), ("x.flipud()", "dims"),
    ("torch.var_mean(x, False)[0]", "correction dim"), ("torch.std_mean(x)[0]", "correction dim"),
    ("torch.var_mean(x, 1)[0]", "correction dim"), ("torch.qr(B)[1]", "mode"),
    ("torch.linalg.qr(B, 'complete')[1]", "mode"),
    ("torch.linalg.svd(B)[1]", "S_sym_argsize_minus_1"),
    ("torch.linalg.svdvals(x)", "S_sym_argsize_minus_1"), ("x.roll(-1, 0)", "shifts dims"),
    ("torch.linalg.norm(B)", "ord dim"), ("torch.linalg.matrix_norm(B)", "ord dim result self"),
    ("torch.linalg.vector_norm(x, dim=1)", "ord dim keepdim"), ("torch.rot90(x, -1)", "k dims"),
    ("F.pad(x, (1, 2), mode='reflect')", "padding self"),
    ("F.pad(x, (-1, 2), mode='replicate')", "padding self"),
    ("torch.lu_solve(q, LU, pivots)", "LU pivots result left adjoint"),
    ("torch.triangular_solve(q, B)[0]", "solution A self upper transpose unitriangular"),
    ("torch.linalg.slogdet(B)[1]", "A sign"), ("torch.special.ndtri(x.sigmoid())", "result"),
    ("F.max_unpool3d(*F.max_pool3d(x[None, None, None], 1, return_indices=True), 1)", "indices"),
    ("torch.squeeze_copy(x[None], 0)", "dim"), ("torch.squeeze_copy(x[None], (0, 1))", "dim"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("call", "names"), ATTRIBUTES)
def test_what_nodes_tell(call: str, names: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        space: dict[str, Any] = {"torch": torch}
        exec(OPERANDS, space)
        node = eval(call, space).grad_fn
        log(node.name())
        for name in names.split():
            found = log.attempt(getattr, node, f"_saved_{name}")
            del found


def test_an_index_that_is_a_number_stays_in_place() -> None:
    """The gradient of the composed `lu_solve` flows to both of its factors."""
    B = leafax.eye(3, dtype=leafax.float64) * 2
    LU, pivots = leafax.linalg.lu_factor(B)
    LU.requires_grad_()
    b = leafax.ones(3, 1, dtype=leafax.float64, requires_grad=True)
    leafax.linalg.lu_solve(LU, pivots, b).sum().backward()
    assert b.grad.tolist() == [[0.5]] * 3
    assert LU.grad.diagonal().tolist() == [-0.25] * 3
