"""`nn.utils.parametrize` and `nn.utils.parametrizations` against torch."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from helpers.module_scripts import Said, agree

import leafax
from leafax import nn


def filled(t: Any, module: Any, seed: int = 0) -> Any:
    """The same parameters in both libraries, in float64."""
    draw = np.random.default_rng(seed)
    module = module.double()
    for p in module.parameters():
        p.data = t.from_numpy(draw.standard_normal(tuple(p.shape)))
    return module


def kinds(t: Any) -> dict[str, Any]:
    """Parametrizations by name."""

    class Skew(t.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            x = x.tril(-1)
            return x - x.T

    class Cayley(t.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, n: int) -> None:
            super().__init__()
            self.register_buffer("one", t.eye(n, dtype=t.float64))

        def forward(self, x: Any) -> Any:
            return t.linalg.solve(self.one - x, self.one + x)

    class Double(t.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return 2 * x

        def right_inverse(self, x: Any) -> Any:
            return 0.5 * x

    class Sum(t.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any, y: Any) -> Any:
            return x + y

        def right_inverse(self, z: Any) -> Any:
            return z, t.zeros_like(z)

    class NoInverse(t.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return x + 1

        def right_inverse(self, x: Any) -> Any:
            raise NotImplementedError

    def fixed(forward: Any = None, inverse: Any = None) -> Any:
        class Made(t.nn.Module):  # type: ignore[misc, name-defined]
            def forward(self, *x: Any) -> Any:
                return forward(*x) if forward else x[0]

        if inverse:
            Made.right_inverse = lambda self, x: inverse(x)
        return Made()

    return dict(Skew=Skew, Cayley=Cayley, Double=Double, Sum=Sum, NoInverse=NoInverse, fixed=fixed)


def members(m: Any) -> list[Any]:
    return [
        [n for n, _ in m.named_parameters()], [n for n, _ in m.named_buffers()],
        list(m.state_dict()), type(m).__name__, [type(c).__name__ for c in m.modules()],
    ]  # fmt: skip


def test_registering_and_removing() -> None:
    def script(t: Any, said: Said) -> None:
        P, k = t.nn.utils.parametrize, kinds(t)
        m = filled(t, t.nn.Linear(3, 3))
        before = m.weight
        said(P.is_parametrized(m), P.type_before_parametrizations(m) is t.nn.Linear)
        said(P.register_parametrization(m, "weight", k["Skew"]()) is m)
        said(P.register_parametrization(m, "weight", k["Cayley"](3)) is m)
        P.register_parametrization(m, "bias", k["Double"]())
        said(m, *members(m), m.parametrizations.weight.original is before)
        said(P.is_parametrized(m), P.is_parametrized(m, "weight"), P.is_parametrized(m, "x"))
        said(P.type_before_parametrizations(m) is t.nn.Linear, isinstance(m, t.nn.Linear))
        said((m.weight @ m.weight.T).detach().numpy().round(9) + 0.0)
        m(t.ones(2, 3, dtype=t.float64)).pow(2).sum().backward()
        for p in m.parameters():
            said(p.grad.numpy().round(9) + 0.0)
        m.bias = t.tensor([1.0, 2.0, 3.0], dtype=t.float64)
        said(m.bias, m.parametrizations.bias.original)
        said.refused(
            lambda: setattr(m, "weight", t.ones(3, 3)), lambda: pickle.dumps(m),
            lambda: t.save(m, io.BytesIO()), lambda: P.remove_parametrizations(m, "nothing"),
            lambda: P.register_parametrization(m, "nothing", k["Skew"]()),
            lambda: P.ParametrizationList([], before),
        )  # fmt: skip
        P.remove_parametrizations(m, "weight")
        said(m, *members(m), m.weight is before, m.weight.requires_grad)
        P.remove_parametrizations(m, "bias", leave_parametrized=False)
        said(m, *members(m), m.bias, type(m) is t.nn.Linear, hasattr(m, "parametrizations"))
        pickle.dumps(m.state_dict())

    agree(script)


def test_several_originals_and_buffers() -> None:
    def script(t: Any, said: Said) -> None:
        P, k = t.nn.utils.parametrize, kinds(t)
        m = t.nn.BatchNorm1d(2)
        P.register_parametrization(m, "running_mean", k["Double"]())
        P.register_parametrization(m, "weight", k["Sum"]())
        P.register_parametrization(m, "weight", k["Double"]())
        said(m, *members(m), m.weight, m.parametrizations.weight.ntensors)
        m.weight = t.tensor([4.0, 6.0])
        said(m.weight, m.parametrizations.weight.original0, m.parametrizations.weight.original1)
        m.running_mean = t.tensor([1.0, 3.0])
        said(m.running_mean, m.parametrizations.running_mean.original)
        said.refused(lambda: P.remove_parametrizations(m, "weight", leave_parametrized=False))
        P.remove_parametrizations(m, "weight")
        said(m.weight, isinstance(m.weight, t.nn.Parameter), list(m._parameters))
        P.remove_parametrizations(m, "running_mean")
        said(m.running_mean, list(m._buffers), m.running_mean.requires_grad)
        m.load_state_dict(t.nn.BatchNorm1d(2).state_dict())
        said(m.weight)

    agree(script)


def test_what_does_not_fit_is_refused() -> None:
    def script(t: Any, said: Said) -> None:
        P, fixed = t.nn.utils.parametrize, kinds(t)["fixed"]
        registered = P.register_parametrization

        def first(**methods: Any) -> Any:
            return lambda: registered(t.nn.Linear(2, 2), "weight", fixed(**methods))

        def second(**methods: Any) -> Any:
            return lambda: registered(
                registered(t.nn.Linear(2, 2), "weight", fixed()), "weight", fixed(**methods)
            )

        def assigned(inverse: Any, *later: Any) -> Any:
            results = iter([inverse, *later])
            m = registered(
                t.nn.Linear(2, 2), "weight", fixed(lambda *x: x[0], lambda x: next(results)(x)),
                unsafe=True,
            )  # fmt: skip
            return lambda: setattr(m, "weight", t.ones(2, 2))

        both = (first, second)
        for make in both:
            said.refused(
                make(forward=lambda x: 1), make(forward=lambda x: x.double()),
                make(forward=lambda x: x.sum()), make(inverse=lambda x: 1),
                make(inverse=lambda x: x.double()), make(inverse=lambda x: x.sum()),
                make(inverse=lambda x: (x, 1)), make(inverse=lambda x: {x}),
            )  # fmt: skip
        pair = lambda x: (x, x)  # noqa: E731
        said.refused(
            assigned(lambda x: x, lambda x: 1), assigned(lambda x: x, lambda x: x.double()),
            assigned(pair, lambda x: 1), assigned(pair, lambda x: (x,)),
            assigned(pair, lambda x: (x, 1)), assigned(pair, lambda x: (x, x.double())),
            lambda: setattr(registered(t.nn.Linear(2, 2), "bias", fixed()), "bias", t.ones(2)),
        )  # fmt: skip
        m = registered(t.nn.Linear(2, 2), "weight", fixed(lambda x: x.sum()), unsafe=True)
        registered(m, "weight", fixed(lambda x: x.double()), unsafe=True)
        said(m.weight.shape, m.weight.dtype, m.parametrizations.weight.unsafe)
        m = registered(t.nn.Linear(2, 2), "weight", kinds(t)["NoInverse"]())
        said(m.parametrizations.weight.is_tensor, m.weight.shape)

    agree(script)


def test_caching() -> None:
    def script(t: Any, said: Said) -> None:
        P, k = t.nn.utils.parametrize, kinds(t)
        m = P.register_parametrization(t.nn.Linear(2, 2), "weight", k["Double"]())
        said(m.weight is m.weight)
        with P.cached():
            x = m.weight
            with P.cached():
                said(m.weight is x)
            said(m.weight is x)
        said(m.weight is x)

    agree(script)


def test_copies_and_transfers() -> None:
    def script(t: Any, said: Said) -> None:
        P, k = t.nn.utils.parametrize, kinds(t)

        class Slotted(t.nn.Linear):  # type: ignore[misc, name-defined]
            __slots__ = ["extra"]

        m = filled(t, Slotted(2, 2))
        m.extra = [1]
        P.register_parametrization(m, "weight", k["Double"]())
        P.register_parametrization(m, "bias", k["Sum"]())
        c = copy.deepcopy(m)
        said(c, c.weight.equal(m.weight), c.extra, c.extra is m.extra)
        said(c.parametrizations.weight.original is m.parametrizations.weight.original)
        c.weight = t.ones(2, 2, dtype=t.float64)
        said(m.weight.equal(c.weight), type(c).__mro__[1] is Slotted)
        for name in ("weight", None):
            other = t.nn.Linear(2, 2).double()
            said(P.transfer_parametrizations_and_params(m, other, name) is other, other)
            said(other.weight.equal(m.weight), *members(other))
            said(
                other.parametrizations.weight.original is m.parametrizations.weight.original,
                other.bias.equal(m.bias),
            )
        bare = t.nn.Module()
        P.transfer_parametrizations_and_params(m, bare, "bias")
        said(bare, *members(bare), bare.bias)
        P.transfer_parametrizations_and_params(t.nn.Linear(2, 2), bare)
        fresh = P.register_parametrization(t.nn.Linear(2, 2).double(), "weight", k["Double"]())
        P.register_parametrization(fresh, "bias", k["Sum"]())
        said(fresh.load_state_dict(m.state_dict()), fresh.weight.equal(m.weight))

    agree(script)


def test_modes_reach_parametrizations_and_optimizers_keep_their_parameters() -> None:
    def script(t: Any, said: Said) -> None:
        P, k = t.nn.utils.parametrize, kinds(t)
        m = filled(t, t.nn.Linear(2, 2)).eval()
        optimizer = t.optim.SGD(m.parameters(), lr=0.1)
        P.register_parametrization(m, "weight", k["Double"]())
        said(m.parametrizations.weight[0].training, m.train().parametrizations.weight[0].training)
        for _ in range(3):
            optimizer.zero_grad()
            m(t.ones(1, 2, dtype=t.float64)).pow(2).sum().backward()
            optimizer.step()
        P.remove_parametrizations(m, "weight")
        m(t.ones(1, 2, dtype=t.float64)).pow(2).sum().backward()
        optimizer.step()
        said(m.weight.detach().numpy().round(9))

    agree(script)


SHAPES = {  # the exponential takes long to compile
    "matrix_exp": [(3, 3)], "cayley": [(2, 3, 3)], "householder": [(2, 4)],
}  # fmt: skip


@pytest.mark.quick(2)
@pytest.mark.parametrize("kind", list(SHAPES))
def test_orthogonal(kind: str) -> None:
    draw = np.random.default_rng(1)
    for shape in SHAPES[kind]:
        given, base, moved = (draw.standard_normal(shape) for _ in range(3))
        found = []
        for t in (torch, leafax):
            m: Any = t.nn.Module()
            m.w = t.nn.Parameter(t.from_numpy(given))
            made = t.nn.utils.parametrizations.orthogonal(m, "w", kind)
            p = made.parametrizations.w
            size = max(shape[-2:])
            exact = p[0].base is not None and shape[-2] == shape[-1]
            found.append([m.w.detach().numpy()] if exact else [])
            q = np.linalg.qr(base @ base.swapaxes(-1, -2) if shape[-2] == size else
                             base.swapaxes(-1, -2) @ base)[0]  # fmt: skip
            p[0].base = t.from_numpy(q)  # what is drawn for it differs
            p.original.data = t.from_numpy(moved)
            p.original.data.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
            (m.w * t.from_numpy(base)).sum().backward()
            found[-1] += [m.w.detach().numpy(), p.original.grad.numpy()]
        for ref, own in zip(*found, strict=True):
            np.testing.assert_allclose(own, ref, rtol=0, atol=1e-9)
        tall = own_w if (own_w := found[1][-2]).shape[-2] >= own_w.shape[-1] else (
            own_w.swapaxes(-1, -2))  # fmt: skip
        one = tall.swapaxes(-1, -2) @ tall
        np.testing.assert_allclose(one, np.broadcast_to(np.eye(one.shape[-1]), one.shape),
                                   rtol=0, atol=1e-9)  # fmt: skip


def test_orthogonal_assignment_and_refusals() -> None:
    def script(t: Any, said: Said) -> None:
        orthogonal = t.nn.utils.parametrizations.orthogonal
        matrix = np.random.default_rng(3).standard_normal((4, 3))
        for shape, kind in (((4, 3), "cayley"), ((3, 4), "householder")):
            goal = t.from_numpy(np.linalg.qr(matrix[: max(shape)])[0])
            goal = goal.T if shape == (3, 4) else goal
            m = orthogonal(t.nn.Linear(*shape[::-1]).double(), orthogonal_map=kind)
            m.weight = goal
            said((m.weight - goal).abs().max().item() < 1e-9, m)
            said(m.parametrizations.weight.original)
            m = orthogonal(
                t.nn.Linear(*shape[::-1]).double(), orthogonal_map="householder",
                use_trivialization=False,
            )  # fmt: skip
            m.weight = goal
            said((m.weight - goal).abs().max().item() < 1e-9)
            said(m.parametrizations.weight.original.detach().numpy().round(9) + 0.0)
        free = orthogonal(t.nn.Linear(3, 3), use_trivialization=False)
        complex_m: Any = t.nn.Module()
        complex_m.w = t.nn.Parameter(t.from_numpy(matrix[:3, :2] + 1j * matrix[1:, :2]))
        said(orthogonal(complex_m, "w", "cayley").parametrizations.w[0].orthogonal_map.name)
        w = complex_m.w
        said((w.mH @ w - t.eye(2)).abs().max().item() < 1e-9, w.dtype)
        other: Any = t.nn.Module()
        other.w = t.nn.Parameter(t.ones(3, 2, dtype=t.complex64))
        said.refused(
            lambda: setattr(free, "weight", t.eye(3)),
            lambda: setattr(orthogonal(t.nn.Linear(2, 2)), "weight", t.eye(3)),
            lambda: orthogonal(t.nn.Linear(2, 2), "bias"), lambda: orthogonal(t.nn.ReLU()),
            lambda: orthogonal(t.nn.Linear(2, 2), orthogonal_map="other"),
            lambda: orthogonal(other, "w", "householder"),
        )  # fmt: skip

    agree(script)


def test_weight_norm() -> None:
    def script(t: Any, said: Said) -> None:
        weight_norm = t.nn.utils.parametrizations.weight_norm
        old = {}
        for dim in (1, None):
            m = filled(t, t.nn.Conv1d(2, 3, 2))
            was = m.weight.detach().clone()
            said(weight_norm(m, dim=dim) is m, m, *members(m))
            said((m.weight - was).abs().max().item() < 1e-12)
            said([tuple(p.shape) for p in m.parameters()])
            m.parametrizations.weight.original0.data *= 2
            (m.weight * was * was).sum().backward()
            said(*(p.grad.numpy().round(9) for p in m.parametrizations.weight.parameters()))
            m.weight = was
            said((m.weight - was).abs().max().item() < 1e-12)
            old = {
                "weight_g": m.parametrizations.weight.original0 * 3, "bias": m.bias,
                "weight_v": m.parametrizations.weight.original1,
            }  # fmt: skip
            said(m.load_state_dict(old), (m.weight - 3 * was).abs().max().item() < 1e-12)
        t.nn.utils.parametrize.remove_parametrizations(m, "weight")
        said(m, list(m._parameters))

    agree(script)


def test_spectral_norm() -> None:
    def script(t: Any, said: Said) -> None:
        made = t.nn.utils.parametrizations
        for layer, x in (
            (t.nn.Linear(3, 2), t.ones(1, 3)), (t.nn.ConvTranspose1d(3, 2, 2), t.ones(1, 3, 2)),
            (t.nn.Conv2d(2, 2, 1), t.ones(1, 2, 1, 1)),
        ):  # fmt: skip
            m = filled(t, layer)
            said(made.spectral_norm(m, n_power_iterations=2) is m, m, *members(m))
            norm = m.parametrizations.weight[0]
            norm._u, norm._v = (
                t.nn.functional.normalize(1 + t.arange(x.numel(), dtype=t.float64), dim=0)
                for x in (norm._u, norm._v)
            )
            m(x.double()).pow(2).sum().backward()
            said(norm._u.numpy().round(9), norm._v.numpy().round(9))
            said(m.parametrizations.weight.original.grad.numpy().round(8))
            m.eval()
            said(m.weight.detach().numpy().round(8), m.weight.equal(m.weight))
        m = filled(t, t.nn.Linear(3, 2))
        made.spectral_norm(m, "bias")
        said(m.bias.norm().item() - 1 < 1e-9, list(m.state_dict()))
        said.refused(
            lambda: made.spectral_norm(m, dim=2), lambda: made.spectral_norm(m, dim=-3),
            lambda: made.spectral_norm(m, n_power_iterations=0),
            lambda: made.spectral_norm(t.nn.ReLU()),
        )  # fmt: skip
        m = made.spectral_norm(t.nn.Linear(3, 3).double(), n_power_iterations=20)
        for _ in range(5):
            m(t.ones(1, 3, dtype=t.float64))
        m.eval()
        said(abs(t.linalg.matrix_norm(m.weight, 2).item() - 1) < 1e-3)

    agree(script)


def test_power_iterations_are_part_of_the_steps_program() -> None:
    model = nn.Sequential(
        nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)), nn.Tanh(),
        nn.utils.parametrizations.weight_norm(nn.Linear(4, 2)),
    )  # fmt: skip
    optimizer = leafax.optim.SGD(model.parameters(), lr=0.1)
    x, u = leafax.ones(3, 4), model[0].parametrizations.weight[0]._u
    seen = [u.tolist()]
    runs = []
    for _ in range(4):
        leafax.explain(clear=True)
        for _ in range(2):
            optimizer.zero_grad()
            (model(x) - 1).pow(2).mean().backward()
            optimizer.step()
        runs.append([run.how for run in leafax.explain(clear=True).runs])
        seen.append(u.tolist())
    assert len({tuple(x) for x in seen}) == 5
    assert runs[1:] == [["cached"] * 2] * 3
