"""Sparse tensors: what PyTorch's give, printed and differentiated, and one program a step."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import leafax

LIBS = [torch, leafax]
pytestmark = pytest.mark.filterwarnings("ignore:Sparse (CSR|invariant)")
_ADDRESS = re.compile(r"\(Triggered.*|\n\n.*", re.S)


def coo(t: Any, again: bool = False, grad: bool = False) -> Any:
    """Make a 2 x 3 matrix; with `again` an element stands twice."""
    places = [[0, 1, 1, 1], [2, 0, 2, 2]] if again else [[0, 1, 1], [2, 0, 2]]
    values = [3.0, 4.0, 5.0, 6.0] if again else [3.0, 4.0, 5.0]
    v = t.tensor(values, dtype=t.float64, requires_grad=grad)
    s = t.sparse_coo_tensor(t.tensor(places), v, (2, 3))
    return s if again else s.coalesce()


def shown(x: Any) -> Any:
    if isinstance(x, (tuple, list)):
        return [shown(y) for y in x]
    return repr(x).replace("leafax", "torch")


EXPRESSIONS = [
    "s", "s2", "s2.coalesce()", "s2.to_dense()", "s.indices()", "s.values()", "s2._indices()",
    "s2._values()", "(s.is_sparse, s.layout, s.shape, s.dim(), s._nnz(), s.is_coalesced())",
    "s.dtype",
    "(s.sparse_dim(), s.dense_dim(), s.size(0), s.numel(), len(s), s.is_sparse_csr, s.ndim)",
    "(s2.is_coalesced(), s.T.is_coalesced(), isinstance(s, t.Tensor), t.is_tensor(s))", "s @ d",
    "s2 @ d", "t.sparse.mm(s, d)", "t.mm(s, d)", "t.spmm(s, d)", "s.matmul(d)", "s @ x",
    "t.mv(s, x)", "d.T @ s.t()", "t.sparse.mm(s, s.t())", "t.sparse.addmm(o, s, d)",
    "t.addmm(o, s, d, beta=2, alpha=3)", "t.nn.functional.linear(d.T, s)",
    "t.bmm(t.stack([s]), d.unsqueeze(0))", "s * 2", "2 * s2", "s / 2", "-s", "s + s", "s - 2 * s",
    "s * s", "(s + s2).to_dense()", "e + s", "s * e", "e * s", "s ** 2", "s.abs()", "t.sqrt(s)",
    "s2.relu()", "s.t()", "s.transpose(0, 1)", "s.permute(1, 0)", "t.sparse.sum(s)",
    "t.sparse.sum(s, dim=0)", "t.sparse.sum(s2, 1)", "t.sparse.sum(s, [0, 1])", "s.sum()",
    "s.sum(1)", "s.norm()", "t.sparse.softmax(s, 1)", "t.sparse.log_softmax(s, 1)",
    "t.sparse.softmax(s2, 0)", "s.to(t.float32)", "s.float().dtype", "s.clone()", "s.cpu()",
    "s.type()", "s.any()", "s[0]", "s[0, 2]", "s[:, 0]", "s.select(1, 2)", "s.unsqueeze(0)",
    "s.index_select(0, i)", "s.index_select(1, i * 2).to_dense()", "t.cat([s, s])",
    "t.cat([s, s], 1)", "t.cat([s.float(), s])", "h.unsqueeze(-1)",
    "t.stack([s, s])", "t.stack([s, s], 1)", "s.zero_()", "s.mul_(2)",
    "t.zeros_like(s)", "h", "h.to_dense()", "h.values()", "t.sparse.sum(h, 0)",
    "t.sparse.sum(h, 1)", "h.coalesce()", "h * 2", "d.to_sparse()", "d.to_sparse(1)",
    "d.to_sparse().to_dense()", "d.to_sparse_coo()", "e.sparse_mask(s)", "d.to_sparse_csr()", "c",
    "d.to_sparse_csc()", "c.t()", "c.t().t()", "c.t() @ t.ones(2, 2, dtype=t.float64)",
    "(c.t().ccol_indices(), c.t().row_indices(), c.t().layout)", "c.to_sparse_csc().to_dense()",
    "t.sparse.mm(c, d, reduce='mean')", "t.sparse.mm(c, d, 'amax')", "t.sparse.mm(c, d, 'amin')",
    "s2._coalesced_(True).is_coalesced()", "t.sparse_csc_tensor([0, 1], [0], [2.0], (3, 1))",
    "t.sparse_compressed_tensor([0, 1], [0], [2.0], (1, 3), layout=t.sparse_csr)",
    "c.to_dense()", "c @ d", "c @ x", "(c.crow_indices(), c.col_indices(), c.values(), c.layout)",
    "c.to_sparse()", "s.to_sparse_csr()", "c * 2", "(c.shape, c.is_sparse_csr, c.is_sparse)",
    "t.sparse_coo_tensor((2, 3))", "t.sparse_coo_tensor([[0, 1], [0, 1]], [1, 2])",
    "t.sparse.spdiags(t.ones(2, 3), t.tensor([0, 1]), (3, 3))",
    "t.sparse.sampled_addmm(c, t.ones(2, 4, dtype=t.float64), t.ones(4, 3, dtype=t.float64))",
    "s2.indices()", "s2.values()", "s + e", "s.reshape(3, 2)", "s.numpy()", "s.tolist()",
    "bool(s)", "d.coalesce()", "t.sparse_coo_tensor(t.tensor([[0, 1]]), t.ones(3))",
    "t.sparse_coo_tensor(t.tensor([[0]]), t.ones(1), (2, 2))", "s @ t.ones(2, 2, dtype=t.float64)",
]  # fmt: skip


@pytest.mark.parametrize("first", range(0, len(EXPRESSIONS), 15))
def test_values_and_printing(first: int) -> None:
    for expression in EXPRESSIONS[first : first + 15]:
        seen = []
        for t in LIBS:
            f64 = {"dtype": t.float64}
            names = {
                "t": t, "s": coo(t), "s2": coo(t, again=True), "x": t.ones(3, **f64),
                "d": t.arange(6.0, **f64).reshape(3, 2), "o": t.ones(2, 2, **f64),
                "e": t.arange(6.0, **f64).reshape(2, 3), "i": t.tensor([1]),
                "h": t.sparse_coo_tensor([[0, 1, 1]], t.arange(6.0).reshape(3, 2), (2, 2)),
                "c": coo(t).to_sparse_csr(),
            }  # fmt: skip
            try:
                seen.append(shown(eval(expression, names)))
            except Exception as error:
                seen.append((type(error).__name__, _ADDRESS.sub("", str(error))))
        assert seen[0] == seen[1], expression


LOSSES: list[Callable[[Any, Any, Any], Any]] = [
    lambda t, s, d: (s @ d).pow(2).sum(),
    lambda t, s, d: t.sparse.mm(s, d).sin().sum(),
    lambda t, s, d: (d.T @ s.t()).exp().sum(),
    lambda t, s, d: t.sparse.sum(s * 3),
    lambda t, s, d: s.to_dense().pow(3).sum(),
    lambda t, s, d: t.sparse.softmax(s, 1).to_dense().pow(2).sum(),
    lambda t, s, d: (s + s).coalesce().values().pow(2).sum(),
    lambda t, s, d: t.sparse.sum(s, dim=0).to_dense().pow(2).sum(),
]


@pytest.mark.parametrize("which", range(len(LOSSES)))
def test_gradients(which: int) -> None:
    found = []
    for t in LIBS:
        v = t.tensor([3.0, 4.0, 5.0], dtype=t.float64, requires_grad=True)
        d = t.arange(6.0, dtype=t.float64).reshape(3, 2).mul(0.1).requires_grad_()
        s = t.sparse_coo_tensor(t.tensor([[0, 1, 1], [2, 0, 2]]), v, (2, 3))
        s = s.coalesce() if which == 5 else s
        LOSSES[which](t, s, d).backward()
        found += [v.grad.numpy(), None if d.grad is None else d.grad.numpy()]
        assert s.requires_grad
    np.testing.assert_allclose(found[2], found[0], rtol=1e-12)
    if found[1] is not None:
        np.testing.assert_allclose(found[3], found[1], rtol=1e-12)


def test_copies_and_modules() -> None:
    for s in (coo(leafax), coo(leafax).to_sparse_csr(), coo(leafax).to_sparse_csc()):
        back = pickle.loads(pickle.dumps(s))
        assert type(back) is type(s) and back.to_dense().tolist() == s.to_dense().tolist()
        module = leafax.nn.Module()
        module.register_buffer("graph", s)
        module.float()
        assert module.graph.dtype is leafax.float32 and "graph" in module.state_dict()
        assert copy.deepcopy(module).graph.layout is s.layout


def test_sparse_leaves() -> None:
    found = []
    for t in LIBS:
        s = t.sparse_coo_tensor(
            t.tensor([[0, 1], [1, 0]]), t.tensor([1.0, 2.0]), (2, 2), requires_grad=True
        )
        (t.sparse.mm(s, t.eye(2)) * t.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
        found.append((s.is_leaf, s.grad.to_dense().tolist(), s.detach().requires_grad))
        assert copy.deepcopy(s).requires_grad and s.grad.is_sparse
    assert found[0] == found[1]


def test_a_graph_network_learns_in_one_program_a_step() -> None:
    """Train two layers of a graph convolution as PyTorch does."""
    rng = np.random.default_rng(0)
    edges = np.unique(rng.integers(0, 8, size=(2, 20)), axis=1)
    features, labels = rng.normal(size=(8, 5)), rng.integers(0, 3, size=8)
    weights = [rng.normal(size=(5, 4)) * 0.5, rng.normal(size=(4, 3)) * 0.5]
    losses: list[list[float]] = []
    for t in LIBS:
        adjacency = t.sparse_coo_tensor(
            t.from_numpy(edges), t.ones(edges.shape[1], dtype=t.float64) / 3, (8, 8)
        ).coalesce()
        x, y = t.from_numpy(features), t.from_numpy(labels)
        params = [t.from_numpy(w.copy()).requires_grad_() for w in weights]
        optimizer = t.optim.Adam(params, lr=0.05)
        losses.append([])
        for _ in range(6):
            hidden = t.relu(adjacency @ (x @ params[0]))
            loss = t.nn.functional.cross_entropy(t.sparse.mm(adjacency, hidden @ params[1]), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-9)
    assert [run.how for run in leafax.explain()][-3:] == ["cached"] * 3


def test_refusals() -> None:
    t = leafax
    s = coo(t)
    for call, name in (
        (lambda: s.view(6), "view"), (lambda: t.max(s), "max"), (lambda: s == s, "eq"),
        (lambda: t.nn.functional.gelu(s), "gelu"),
    ):  # fmt: skip
        with pytest.raises(
            NotImplementedError, match=f"Could not run 'aten::{name}' with arguments"
        ):
            call()
    for name in ("sparse_bsc_tensor", "sparse_bsr_tensor"):
        with pytest.raises(
            NotImplementedError, match="torch.sparse_coo, torch.sparse_csr and torch.sparse_csc"
        ):
            getattr(t, name)([0], [0], [0])
    with pytest.raises(NotImplementedError, match="here it makes dense tensors"):
        t.zeros(2, layout=t.sparse_coo)
    with pytest.raises(NotImplementedError, match="a sparse tensor was given to a function"):
        t.save(t.nn.Parameter, s._v)
    with t.sparse.check_sparse_tensor_invariants():
        assert t.sparse.check_sparse_tensor_invariants.is_enabled()
