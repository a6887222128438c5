"""Transforms, constraints and their registries against live PyTorch."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from helpers.distributions import DISTRIBUTIONS

import leafax

Make = Callable[[Any, Any], Any]


def vector(t: Any, *values: Any) -> Any:
    return t.tensor(list(values), dtype=t.float64)


# Each with a value of its domain.
TRANSFORMS: dict[str, tuple[Make, Any]] = {
    "abs": (lambda t, D: D.AbsTransform(), [0.5, -1.0]),
    "affine": (lambda t, D: D.AffineTransform(vector(t, 1.0, 2.0), vector(t, -2.0, 3.0)), [0.5, 1]),
    "affine numbers": (lambda t, D: D.AffineTransform(1.0, -2.0), [0.5, 1.0]),
    "affine events": (lambda t, D: D.AffineTransform(1.0, 2.0, event_dim=1), [[0.5, 1.0]]),
    "exp": (lambda t, D: D.ExpTransform(), [0.5, -1.0]),
    "power": (lambda t, D: D.PowerTransform(vector(t, 2.0, -0.5)), [0.5, 2.0]),
    "sigmoid": (lambda t, D: D.SigmoidTransform(), [0.5, -1.0]),
    "softplus": (lambda t, D: D.SoftplusTransform(), [0.5, -1.0]),
    "tanh": (lambda t, D: D.TanhTransform(), [0.5, -1.0]),
    "softmax": (lambda t, D: D.SoftmaxTransform(), [[0.5, -1.0, 0.2]]),
    "stick": (lambda t, D: D.StickBreakingTransform(), [[0.5, -1.0, 0.2]]),
    "corr": (lambda t, D: D.CorrCholeskyTransform(), [[0.5, -1.0, 0.2]]),
    "lower": (lambda t, D: D.LowerCholeskyTransform(), [[0.5, -1.0], [0.2, 0.3]]),
    "definite": (lambda t, D: D.PositiveDefiniteTransform(), [[0.5, -1.0], [0.2, 0.3]]),
    "reshape": (lambda t, D: D.ReshapeTransform((2, 2), (4,)), [[[0.5, -1.0], [0.2, 0.3]]]),
    "independent": (lambda t, D: D.IndependentTransform(D.ExpTransform(), 1), [[0.5, -1.0]]),
    "compose": (
        lambda t, D: D.ComposeTransform(
            [D.AffineTransform(0.0, 2.0), D.TanhTransform(), D.AffineTransform(1.0, 0.5)]
        ),
        [0.5, -1.0],
    ),
    "compose events": (
        lambda t, D: D.ComposeTransform([D.ExpTransform(), D.StickBreakingTransform()]),
        [[0.5, -1.0]],
    ),
    "identity": (lambda t, D: D.identity_transform, [0.5, -1.0]),
    "cat": (
        lambda t, D: D.CatTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0)], 0, [1, 2]),
        [0.5, -1.0, 0.3],
    ),
    "stack": (lambda t, D: D.StackTransform([D.ExpTransform(), D.TanhTransform()], 0), [0.5, -1]),
    "cdf": (
        lambda t, D: D.CumulativeDistributionTransform(D.Normal(vector(t, 0.0), vector(t, 1.0))),
        [0.5, -1.0],
    ),
}


def outcome(fn: Callable[[], Any], t: Any, x: Any) -> Any:
    """Return the result with its gradient, or the error."""
    try:
        out = fn()
    except (NotImplementedError, ValueError) as error:
        return type(error).__name__, str(error)
    if not isinstance(out, t.Tensor):
        return repr(out)
    found = [out.detach().numpy()]
    if out.requires_grad:
        (grad,) = t.autograd.grad(out.sum(), [x], allow_unused=True)
        found.append(grad.numpy())
    return found


def transformed(t: Any, name: str) -> dict[str, Any]:
    make, value = TRANSFORMS[name]
    T = make(t, DISTRIBUTIONS[t])

    def leaf() -> Any:
        return t.tensor(value, dtype=t.float64, requires_grad=True)

    x = leaf()
    y = T(x).detach().requires_grad_()
    asked: dict[str, tuple[Callable[[], Any], Any]] = {
        "forward": (lambda: T(x), x),
        "inverse": (lambda: T.inv(y), y),
        "jacobian": (lambda: T.log_abs_det_jacobian(x, T(x)), x),
        "inverse jacobian": (lambda: T.inv.log_abs_det_jacobian(y, T.inv(y)), y),
        "sign": (lambda: T.sign, x),
        "bijective": (lambda: T.bijective, x),
        "event": (lambda: (T.domain.event_dim, T.codomain.event_dim, T.event_dim), x),
        "shapes": (lambda: (T.forward_shape(x.shape), T.inverse_shape(y.shape)), x),
        "domain": (lambda: T.domain, x),
        "codomain": (lambda: T.codomain, x),
        "repr": (lambda: [T, T.inv], x),
    }
    found = {k: outcome(fn, t, of) for k, (fn, of) in asked.items()}
    if name not in ("cdf",):
        found["equal"] = [T == make(t, DISTRIBUTIONS[t]), T != T, T.inv.inv == T]
    if T.bijective and T is not DISTRIBUTIONS[t].identity_transform and name != "stack":
        cached = T.with_cache()
        y = cached(x)
        found["cached"] = cached.inv(y) is x or name in ("compose", "compose events")
    return found


@pytest.mark.quick(8)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transform(name: str) -> None:
    ours, theirs = transformed(leafax, name), transformed(torch, name)
    for asked, expected in theirs.items():
        if isinstance(expected, list) and isinstance(expected[0], np.ndarray):
            for one, other in zip(ours[asked], expected, strict=True):
                np.testing.assert_allclose(one, other, 1e-9, 1e-10, err_msg=asked)
        else:
            assert ours[asked] == expected, asked
    T = TRANSFORMS[name][0](leafax, DISTRIBUTIONS[leafax])
    for copied in (copy.deepcopy(T), pickle.loads(pickle.dumps(T))):
        assert repr(copied) == repr(T)


CONSTRAINTS: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "boolean": (lambda t, c: c.boolean, [0.0, 1.0, 0.5]),
    "one_hot": (lambda t, c: c.one_hot, [[0.0, 1.0], [1.0, 1.0], [0.5, 0.5]]),
    "nonnegative_integer": (lambda t, c: c.nonnegative_integer, [0.0, 2.0, -1.0, 0.5]),
    "positive_integer": (lambda t, c: c.positive_integer, [0.0, 2.0, -1.0, 0.5]),
    "integer_interval": (lambda t, c: c.integer_interval(-1, 3), [0.0, 2.5, 3.0, 4.0, -2.0]),
    "real": (lambda t, c: c.real, [0.0, np.nan, np.inf]),
    "real_vector": (lambda t, c: c.real_vector, [[0.0, np.nan], [1.0, 2.0]]),
    "positive": (lambda t, c: c.positive, [0.0, 1.0, -1.0, np.nan]),
    "nonnegative": (lambda t, c: c.nonnegative, [0.0, 1.0, -1.0, np.nan]),
    "greater_than": (lambda t, c: c.greater_than(vector(t, 1.0, 2.0)), [1.5, 1.5]),
    "greater_than_eq": (lambda t, c: c.greater_than_eq(1.0), [1.0, 0.5]),
    "less_than": (lambda t, c: c.less_than(1.0), [1.0, 0.5]),
    "unit_interval": (lambda t, c: c.unit_interval, [0.0, 1.0, 1.1, -0.1]),
    "interval": (lambda t, c: c.interval(-1.0, vector(t, 1.0, 2.0)), [1.5, 1.5]),
    "half_open_interval": (lambda t, c: c.half_open_interval(0.0, 1.0), [0.0, 1.0]),
    "simplex": (lambda t, c: c.simplex, [[0.4, 0.6], [-0.5, 1.5], [0.3, 0.3]]),
    "multinomial": (lambda t, c: c.multinomial(3), [[1.0, 2.0], [2.0, 2.0], [-1.0, 1.0]]),
    "lower_triangular": (lambda t, c: c.lower_triangular, [[[1.0, 0], [2, 1]], [[1, 1], [0, 1]]]),
    "lower_cholesky": (lambda t, c: c.lower_cholesky, [[[1.0, 0], [2, 1]], [[1, 0], [0, -1]]]),
    "corr_cholesky": (lambda t, c: c.corr_cholesky, [[[1.0, 0], [0.6, 0.8]], [[1, 0], [1, 1]]]),
    "square": (lambda t, c: c.square, [[1.0, 0.0]]),
    "symmetric": (lambda t, c: c.symmetric, [[[1.0, 2], [2, 1]], [[1, 1], [0, 1]]]),
    "semidefinite": (lambda t, c: c.positive_semidefinite, [[[1.0, 0], [0, 0]], [[1, 2], [2, 1]]]),
    "definite": (lambda t, c: c.positive_definite, [[[2.0, 1], [1, 1]], [[2, 0], [0, 1]]]),
    "independent": (lambda t, c: c.independent(c.positive, 1), [[1.0, -1.0], [1.0, 2.0]]),
    "cat": (lambda t, c: c.cat([c.positive, c.real], -1, [1, 2]), [-1.0, 1.0, -1.0]),
    "stack": (lambda t, c: c.stack([c.positive, c.unit_interval], -1), [[1.0, 0.5], [-1.0, 2.0]]),
    "mixture": (lambda t, c: c.MixtureSameFamilyConstraint(c.positive), [1.0, -1.0]),
}


def unconstrained(t: Any, registry: Any, constraint: Any, shape: tuple[int, ...]) -> Any:
    """Apply the registry's transform to numbers; return it with the result, or the refusal."""
    try:
        T = registry(constraint)
    except NotImplementedError as error:
        return str(error)
    shape = tuple(T.inverse_shape(t.Size(shape)))
    x = t.tensor(np.linspace(-1, 1, int(np.prod(shape))).reshape(shape))
    return repr(T), T(x).numpy()


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_constraint(name: str) -> None:
    make, value = CONSTRAINTS[name]
    found = []
    for t in (leafax, torch):
        D = DISTRIBUTIONS[t]
        constraint = make(t, D.constraints)
        x = t.tensor(value, dtype=t.float64)
        facts = repr(constraint) if name not in ("cat", "stack") else ""
        registries = D.biject_to, D.transform_to
        found.append((
            facts, constraint.event_dim, constraint.is_discrete, constraint.check(x).tolist(),
            [unconstrained(t, r, constraint, x.shape) for r in registries], constraint,
        ))  # fmt: skip
    ours, theirs = found
    assert ours[:4] == theirs[:4]
    for one, other in zip(ours[4], theirs[4], strict=True):
        if isinstance(other, str):
            assert one == other
            continue
        assert one[0] == other[0] or name in ("cat", "stack")
        np.testing.assert_allclose(one[1], other[1], 1e-9)
    from leafax.distributions._families.host_checks import holds_at_rest

    said = holds_at_rest(ours[5], leafax.tensor(value, dtype=leafax.float64))
    assert said is None or said == all(np.ravel(ours[3]))  # NumPy's answer is the same


def test_dependent_constraints_know_nothing_yet() -> None:
    c = leafax.distributions.constraints
    assert c.is_dependent(c.dependent) and not c.is_dependent(c.real)
    assert c.is_dependent(leafax.distributions.Uniform.support)
    assert leafax.distributions.Uniform.support.event_dim == 0
    with pytest.raises(NotImplementedError, match=r"\.event_dim cannot be determined statically"):
        _ = c.dependent.event_dim
    with pytest.raises(ValueError, match="Cannot determine validity of dependent constraint"):
        c.dependent.check(leafax.zeros(1))
    assert c.dependent(event_dim=2).event_dim == 2


def test_helpers_are_torchs() -> None:
    u, theirs = leafax.distributions.utils, torch.distributions.utils
    for diag in (0, -1, 1):
        m = np.arange(9.0).reshape(3, 3)
        vec = u.tril_matrix_to_vec(leafax.tensor(m), diag)
        assert vec.tolist() == theirs.tril_matrix_to_vec(torch.tensor(m), diag).tolist()
        if diag <= 0:
            expected = theirs.vec_to_tril_matrix(torch.tensor(vec.tolist()), diag)
            assert u.vec_to_tril_matrix(vec, diag).tolist() == expected.tolist()
    with pytest.raises(ValueError, match=r"diag \(3\) provided is outside \[-3, 2\]"):
        u.tril_matrix_to_vec(leafax.eye(3), 3)
    with pytest.raises(ValueError, match="last dimension is 5 which cannot be expressed"):
        u.vec_to_tril_matrix(leafax.ones(5))
    with pytest.raises(ValueError, match="must all be instances of Number, torch.Tensor"):
        u.broadcast_all("a")
    probs = leafax.tensor([0.2, 0.8], dtype=leafax.float64)
    for binary in (False, True):
        back = u.logits_to_probs(u.probs_to_logits(probs, binary), binary)
        np.testing.assert_allclose(back.tolist(), [0.2, 0.8])
