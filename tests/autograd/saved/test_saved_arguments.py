"""`grad_fn._saved_*`: every attribute that torch's nodes have, with the same value."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from helpers.sameness import Log, same

import leafax

F = "torch.nn.functional."
CASES = f"""
a[:, i] | a[0, i] | a[1:] | a[::2] | a[0] | a.narrow(0, 0, 1) | a.index_select(0, i)
torch.stack([a, a]) | torch.cat([a, a], 1) | torch.index_put(a, (i,), torch.zeros(2))
a.mean() | a.mean(1) | a.sum() | a.sum((0, -1), keepdim=True) | a.prod(0) | a.var(0) | a.std()
a.norm() | a.amax(0) | a.max(0)[0] | a.topk(1)[0] | a.sort()[0] | a.kthvalue(1)[0] | a.logsumexp(0)
a.expand(3, 2, 2) | a.view(4) | a.reshape(4) | a.as_strided((3,), (1,))
a.as_strided((3,), (1,), 1)
a.transpose(0, 1) | a.permute(1, 0) | a.movedim(0, 1) | a.squeeze() | a.squeeze(0)
a.unfold(0, 1, 1)
a.diagonal() | a.split(1)[0] | a.unbind()[0] | a.repeat(2, 2) | a.roll(1) | a.flip(0) | a.triu(1)
a.softmax(1) | a.log_softmax(-1) | a.cumsum(0) | a.cumprod(1) | a.gather(1, i[:, None])
a @ a | torch.addmm(a, a, a) | torch.bmm(x[0], x[0]) | a.mv(a[0]) | a[0].dot(a[0])
torch.addbmm(a, torch.ones(1, 2, 2), torch.ones(1, 2, 2)) | {F}linear(a, a, a[0]) | a.trace()
a * 2 | a * 2.5 | a / 2 | a.div(2.0, rounding_mode="trunc") | a ** 2 | 2 ** a | a ** a
a.clamp(min=0) | a.clamp(0, 1) | a.lerp(a, 0.5) | a.add(a, alpha=2)
torch.addcmul(a, a, a, value=2)
torch.logit(a) | torch.logit(a, 1.0) | torch.pdist(a, p=1) | a.masked_fill(a > 0, 1.0)
torch.threshold(a, threshold=1, value=1.0) | torch.threshold(a, threshold=False, value=False)
torch.threshold(a, threshold=1.0, value=1.0) | torch.threshold(a, threshold=1 + 0j, value=1 + 0j)
{F}interpolate(x[0], 4, mode="linear") | {F}interpolate(x[0], scale_factor=0.5, mode="linear")
{F}interpolate(x, scale_factor=2)
{F}interpolate(x, size=(2, 2), mode="bilinear", align_corners=True)
{F}interpolate(x, 2, mode="bicubic") | {F}interpolate(x, 2, mode="nearest-exact")
{F}unfold(x, 2) | {F}fold({F}unfold(x, 2), (3, 3), 2) | {F}avg_pool2d(x, 2)
{F}mse_loss(a, a) | {F}huber_loss(a, a.detach(), reduction="sum") | {F}elu(a) | {F}embedding(i, a)
{F}grid_sample(x, torch.zeros(1, 2, 2, 2), align_corners=False)
torch.cross(a.new_ones(3) * a[0, 0], torch.ones(3), 0)
{F}leaky_relu(a) | {F}gelu(a) | {F}softplus(a) | {F}glu(a) | {F}pad(a, (1, 1)) | torch.diag_embed(a)
a.square() | a.chunk(2)[1] | a.unsafe_chunk(2, 1)[0] | a.split([1, 1])[0] | a.std(False)
a.split_with_sizes([1, 1])[0] | a.T | {F}relu6(a) | {F}selu(a) | a.tile(2) | a.narrow_copy(0, 0, 1)
torch.view_copy(a, (4,)) | torch.masked_scatter(a, a > 0, a) | a.var(True)
a.index_copy(0, i, torch.ones(2, 2))
"""
EXPRESSIONS = [e.strip() for line in CASES.strip().splitlines() for e in line.split(" | ")]


def _node(lib: Any, expression: str) -> Any:
    given = {
        "torch": lib,
        "a": lib.ones(2, 2, requires_grad=True),
        "x": lib.ones(1, 3, 3, 3, requires_grad=True),
        "i": lib.tensor([0, 1]),
    }
    return eval(expression, given).grad_fn


def _plain(value: Any) -> Any:
    if isinstance(value, (torch.Tensor, leafax.Tensor)):
        return str(value.dtype).split(".")[-1], value.detach().tolist()
    if isinstance(value, (tuple, list)):
        return type(value), [_plain(v) for v in value]
    return type(value), value


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_attributes_of_nodes(expression: str) -> None:
    theirs, ours = _node(torch, expression), _node(leafax, expression)
    assert type(ours).__name__ == type(theirs).__name__
    for name in dir(theirs):
        if name.startswith("_saved_"):
            assert _plain(getattr(ours, name)) == _plain(getattr(theirs, name)), name


def test_convolution_nodes() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x, w = torch.ones(1, 1, 3, 3, requires_grad=True), torch.ones(1, 1, 3, 3)
        conv2d = torch.nn.functional.conv2d
        for node in (conv2d(x, w).grad_fn, conv2d(x, w, torch.ones(1), stride=2).grad_fn):
            log(node._saved_bias_sym_sizes_opt, node._saved_stride, node._saved_padding)
            log(node._saved_output_padding, node._saved_transposed, node._saved_groups)
            log(node._saved_input, node._saved_weight)


def test_freed_and_written() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        a = torch.ones(2, 2, requires_grad=True)
        y = a * 2
        z = y * y.exp()
        z.sum().backward()
        log.attempt(lambda: y.grad_fn._saved_other)
        log.attempt(lambda: z.grad_fn._saved_self)
        log(y.grad_fn._saved_self)
        i = torch.tensor([0, 1])
        w = a[:, i]
        w.sum().backward()
        log.attempt(lambda: w.grad_fn._saved_indices)
        log(tuple(w.grad_fn._saved_self_sym_sizes))
        log.attempt(lambda: w.grad_fn._saved_nothing)
        b = a * 1
        c = b * b
        b.add_(1)
        log.attempt(lambda: c.grad_fn._saved_self)


@pytest.mark.parametrize("op", ["conv2d", "conv_transpose2d", "group_norm"])
@pytest.mark.parametrize("written", [0, 1])
def test_operands_are_saved_whatever_requires_grad(op: str, written: int) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        a = torch.ones(1, 2, 3, 3, requires_grad=written == 0)
        b = torch.ones((2,) if op == "group_norm" else (2, 2, 2, 2), requires_grad=written == 1)
        operands = [a.clone(), b.clone()]
        fn = getattr(torch.nn.functional, op)
        y = fn(operands[0], 1, operands[1]) if op == "group_norm" else fn(*operands)
        with torch.no_grad():
            operands[written].add_(1)
        log.attempt(y.sum().backward)


def test_names_of_what_nodes_keep() -> None:
    """The table says of each of torch's nodes what torch's class has."""
    from leafax._rules.saved_names import _kept

    for node, names in _kept().items():
        theirs = getattr(torch._C._functions, node, None)
        for name in (f"{node}Backward0", f"{node[:-1]}Backward{node[-1]}"):
            theirs = theirs or getattr(torch._C._functions, name, None)
        assert names == {n[7:] for n in dir(theirs) if n.startswith("_saved_")}, node


@pytest.mark.parametrize("expression", [
    "torch.stack([a, a.detach()])", "torch.block_diag(a, a)", "torch.where(a > 0, 1.0, a)",
    "a.cumsum(0, dtype=torch.float64)", "a.softmax(0, dtype=torch.float64)", "a.to(torch.float64)",
    "a.copysign(2.0)", "a.clone()", "a.round()",
])  # fmt: skip
def test_nodes_have_nothing_else(expression: str) -> None:
    node, theirs = _node(leafax, expression), _node(torch, expression)
    parameters = (*node.state.call.op.parameters, "self", "other", "dtype")
    for name in parameters:
        assert hasattr(node, f"_saved_{name}") == hasattr(theirs, f"_saved_{name}"), name


@pytest.mark.parametrize("expression", [
    "a.sort(0)[0]", "a.max(0)[0]", "a.topk(1)[0]", "a.kthvalue(1)[0]", "a.cummax(0)[0]",
    "torch.frexp(a)[0]",
])  # fmt: skip
def test_saved_indices_are_no_part_of_the_graph(expression: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        a = torch.tensor([2.0, 1.0], dtype=torch.float64, requires_grad=True)
        made = eval(expression.removesuffix("[0]"), {"torch": torch, "a": a})
        node = made[0].grad_fn
        name = "exponent" if "frexp" in expression else "indices"
        saved = getattr(node, f"_saved_{name}")
        log(saved.requires_grad, saved.grad_fn, saved.is_leaf, saved)


def test_numbers_that_change_from_turn_to_turn_are_told_as_numbers() -> None:
    """They became inputs of the program: of powers nothing but the node knows them."""

    def program(lib: Any, see: Any) -> None:
        for k in (2.0, 3.0, 4.0):
            x = lib.ones(2, requires_grad=True)
            outs = lib.pow(k, x), lib.float_power(k, x), lib.pow(x, k), x * k
            see(*outs)
            see(outs[0].grad_fn._saved_self, outs[1].grad_fn._saved_self)
            see(outs[2].grad_fn._saved_exponent, outs[3].grad_fn._saved_other)

    same(program)
