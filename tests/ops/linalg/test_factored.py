"""Packed factorizations, low rank ones and histograms against torch."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from helpers.sameness import same

import leafax


def tensors(*arrays):
    """leafax tensors with the values of torch's."""
    return [leafax.from_numpy(a.detach().numpy()) for a in arrays]


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("zero_diagonal", [False, True])
def test_ldl(dtype, hermitian, zero_diagonal):
    torch.manual_seed(1)
    a = torch.randn(3, 6, 6, dtype=dtype)
    a = a * (torch.eye(6) == 0) if zero_diagonal else a
    want = torch.linalg.ldl_factor_ex(a, hermitian=hermitian)
    got = leafax.linalg.ldl_factor_ex(*tensors(a), hermitian=hermitian)
    assert (want.pivots < 0).any() or not zero_diagonal  # blocks of two are met
    for w, g in zip(want, got, strict=True):
        np.testing.assert_allclose(g.numpy(), w, atol=1e-9)
    b = torch.randn(3, 6, 2, dtype=dtype)
    x = leafax.linalg.ldl_solve(*tensors(want.LD, want.pivots, b), hermitian=hermitian)
    np.testing.assert_allclose(
        x.numpy(), torch.linalg.ldl_solve(want.LD, want.pivots, b, hermitian=hermitian), atol=1e-8
    )


def test_ldl_of_a_singular_matrix_says_where():
    a = torch.tensor([[1.0, 0, 0], [0, 0, 0], [0, 0, 0]])
    assert leafax.linalg.ldl_factor_ex(*tensors(a)).info.item() == 2
    assert torch.linalg.ldl_factor_ex(a).info.item() == 2


@pytest.mark.parametrize("call", [
    "linalg.ldl_factor(a)", "linalg.ldl_factor(a.flip(0))", "linalg.ldl_factor(a[1])",
    "linalg.ldl_factor_ex(a, check_errors=True)", "linalg.ldl_factor(a[0, :0, :0])",
])  # fmt: skip
def test_ldl_of_a_singular_matrix_raises(call):
    """PyTorch's words begin with the place in its source where it gave up."""
    said = []
    for lib in (torch, leafax):
        a = lib.tensor([[[1.0, 1.0], [1.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]])
        try:
            said.append(str(eval(f"lib.{call}[0]", {"lib": lib, "a": a})))
        except RuntimeError as e:
            said.append(re.search("torch.linalg.*", str(e))[0])
    assert said[0] == said[1]


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
def test_ormqr_gradients(left, transpose):
    torch.manual_seed(0)
    a, tau = torch.geqrf(torch.randn(5, 3, dtype=torch.float64))
    c = torch.randn(5, 4, dtype=torch.float64) if left else torch.randn(4, 5, dtype=torch.float64)
    results = []
    for lib, given in ((torch, (a, tau, c)), (leafax, tensors(a, tau, c))):
        leaves = [t.clone().requires_grad_() for t in given]
        out = lib.ormqr(*leaves, left, transpose)
        grads = lib.autograd.grad((out * out.detach().cos()).sum(), leaves)
        results.append([out.detach().numpy(), *[g.numpy() for g in grads]])
    for want, got in zip(*results, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-9)


def test_geqrf_has_no_derivative():
    for lib in (torch, leafax):
        out = lib.geqrf(lib.ones(3, 2, requires_grad=True))
        assert out.a.requires_grad
        with pytest.raises(NotImplementedError, match="the derivative for 'geqrf' is not impl"):
            out.a.sum().backward()


def test_svd_lowrank_finds_a_matrix_of_low_rank():
    leafax.manual_seed(0)
    rows, columns = leafax.randn(9, 3), leafax.randn(3, 14)
    a = rows @ columns
    u, s, v = leafax.svd_lowrank(a, q=4)
    assert u.shape == (9, 4) and v.shape == (14, 4)
    assert leafax.allclose(u @ s.diag() @ v.mT, a, atol=1e-4)
    assert s[3].item() < 1e-3
    u, s, v = leafax.pca_lowrank(a)
    assert leafax.allclose(u @ s.diag() @ v.mT, a - a.mean(0, keepdim=True), atol=1e-4)
    with pytest.raises(ValueError, match=r"q\(=20\) must be non-negative integer and not greater"):
        leafax.pca_lowrank(a, q=20)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"bins": [2, 3]}, {"bins": 3, "density": True}, {"bins": [2, 2], "range": [0, 1, -1, 1.0]},
        {"bins": [np.array([-1, 0, 0.5, 2]), np.array([-1.0, 1])]}, {"bins": [2]},
        {"bins": 3, "weight": np.arange(8.0).reshape(2, 4)}, {"bins": [2, 0]},
        {"bins": 2, "range": [1.0, 2.0]}, {"bins": 2, "weight": np.ones(3)},
    ],
)  # fmt: skip
def test_histogramdd(kwargs):
    x = np.random.default_rng(0).normal(size=(2, 4, 2))
    results = []
    for lib in (torch, leafax):

        def given(v, lib=lib):
            if isinstance(v, list):
                return [given(y) for y in v]
            return lib.from_numpy(np.array(v)) if isinstance(v, np.ndarray) else v

        try:
            made = lib.histogramdd(lib.from_numpy(x), **{k: given(v) for k, v in kwargs.items()})
            results.append([made.hist.numpy(), *[e.numpy() for e in made.bin_edges]])
        except RuntimeError as error:
            results.append(str(error))
    if isinstance(results[0], str):
        assert results[1] == results[0]
        return
    for want, got in zip(*results, strict=True):
        np.testing.assert_allclose(got, want)


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("size", [2, 1])
def test_fractional_max_pool_at_given_places(dims, size):
    torch.manual_seed(0)
    x = torch.randn(2, 3, *(5, 6, 7)[:dims], dtype=torch.float64)
    places = torch.rand(2, 3, dims, dtype=torch.float64)
    name = f"fractional_max_pool{dims}d"
    results = []
    for lib, (a, s) in ((torch, (x, places)), (leafax, tensors(x, places))):
        a.requires_grad_()
        pool = getattr(lib.nn.functional, name)
        out, at = pool(a, 2, output_size=size + 1, return_indices=True, _random_samples=s)
        (out * out).sum().backward()
        results.append([out.detach().numpy(), at.numpy(), a.grad.numpy()])
    for want, got in zip(*results, strict=True):
        np.testing.assert_allclose(got, want)
    drawn = getattr(leafax.nn.functional, name)(*tensors(x), 2, output_ratio=0.5)
    assert drawn.shape[2:] == tuple(n // 2 for n in x.shape[2:])
    with pytest.raises(ValueError, match="requires specifying either an output_size or"):
        getattr(leafax.nn.functional, name)(*tensors(x), 2)


def test_unravel_index_and_strided_memory():
    for lib in (torch, leafax):
        rows, columns = lib.unravel_index(lib.tensor([3, 5, -1]), (2, 3))
        assert (rows.tolist(), columns.tolist()) == ([1, 1, 1], [0, 2, 2])
        with pytest.raises(TypeError, match="expected 'indices' to be integer dtype, but got"):
            lib.unravel_index(lib.ones(2), (2, 3))
        x = lib.empty_strided((2, 3), (1, 4))
        x.zero_()
        x[1] += 2
        assert x.tolist() == [[0, 0, 0], [2, 2, 2]]
        assert x.stride() == (1, 4) and x._base is None
        assert lib.empty_permuted((2, 3, 4), (2, 0, 1)).stride() == (3, 1, 6)
        with pytest.raises(RuntimeError, match="Duplicate dim not allowed"):
            lib.empty_permuted((2, 3), (1, 1))


def test_results_that_pytorch_marks_constant():
    x = leafax.randn(3, 3, requires_grad=True)
    made = leafax.linalg.lu(x)
    assert [t.requires_grad for t in made] == [False, True, True]
    out, mean, rstd = leafax.native_layer_norm(x, (3,), None, None, 1e-5)
    assert (out.requires_grad, mean.requires_grad, rstd.requires_grad) == (True, False, False)


def test_gradients_of_eigenvalues_are_differentiable():
    found = []
    for lib in (torch, leafax):
        a = lib.tensor([[1.0, 2], [3, 5]], dtype=lib.float64, requires_grad=True)
        values = lib.linalg.eigvals(a).abs().pow(3).sum()
        (g,) = lib.autograd.grad(values, a, create_graph=True)
        (second,) = lib.autograd.grad((g * g).sum(), a)
        found.append([g.detach().numpy(), second.numpy()])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("loss", ["(v * (1 + 1j)).sum().real", "v.abs().sum()", "w.abs().sum()"])
@pytest.mark.parametrize("name", ["eig", "eigh", "svd"])
def test_losses_that_depend_on_the_phase_of_vectors(name, loss, cut):
    found = []
    for lib in (torch, leafax):
        a = lib.tensor([[1, 2j], [-2j, 4]], dtype=lib.complex128, requires_grad=True)
        *_, w, v = getattr(lib.linalg, name)(a)
        if cut:
            v.tolist()
        try:
            eval(loss, {"v": v, "w": w}).backward()
            found.append(a.grad.tolist())
        except RuntimeError as error:
            found.append(str(error))
    if isinstance(found[0], str):
        assert found[0] == found[1]
    else:
        np.testing.assert_allclose(found[1], found[0], atol=1e-9)


@pytest.mark.parametrize("kwargs", [{}, {"some": False}, {"compute_uv": False}])
def test_the_vectors_of_svd_are_a_view(kwargs):
    @same
    def program(lib, log):
        for dtype in (lib.float64, lib.complex128):
            x = lib.arange(6.0).view(3, 2).to(dtype).requires_grad_()
            u, s, v = lib.svd(x, **kwargs)
            log(u.abs().detach(), s, v.is_conj(), v.abs().detach())
            for t in (u, v):
                log(t.stride(), t._version, t._is_view(), t.output_nr, t.requires_grad)
                log(str(t.grad_fn).split(" ")[0])


@pytest.mark.parametrize("call", [
    "lib.linalg.lu(x)", "lib.lu_unpack(*lib.linalg.lu_factor(x))",
    "lib.lu_unpack(*lib.linalg.lu_factor(x), unpack_pivots=False)",
    "lib.lu_unpack(*lib.linalg.lu_factor(x), unpack_data=False)",
])  # fmt: skip
def test_constants_are_no_outputs_of_a_node(call):
    @same
    def program(lib, log):
        x = (lib.arange(4.0).view(2, 2) + 1).requires_grad_()
        made = eval(call, {"lib": lib, "x": x})
        log(type(made).__name__, *made, [t.output_nr for t in made], lib.is_tensor(made.P))
        seen = []
        if not made.L.numel():
            return
        made[1].grad_fn.register_prehook(lambda g: seen.append(len(g)))
        (made[1].sum() + (made[2] ** 2).sum()).backward()
        log(seen, x.grad.tolist())


@pytest.mark.parametrize("call", [
    "lib.linalg.ldl_factor(x)[0]", "lib.linalg.ldl_factor_ex(x)[0]",
    "lib.linalg.ldl_solve(x, pivots, x)", "lib.linalg.ldl_solve(x.detach(), pivots, x)",
])  # fmt: skip
def test_factors_without_a_derivative(call):
    @same
    def program(lib, log):
        pivots = lib.tensor([1, 2], dtype=lib.int32)

        def f(x):
            return eval(call, {"lib": lib, "x": x, "pivots": pivots})

        x = lib.tensor([[4.0, 2.0], [2.0, 3.0]])
        y = f(x.clone().requires_grad_())
        log(y, y.grad_fn.name(), len(y.grad_fn.next_functions))
        with log.catch():
            y.sum().backward()
        with log.catch():
            lib.func.jvp(f, (x,), (x,))
