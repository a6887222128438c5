"""L-BFGS, as PyTorch computes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from leafax.functional.program.op import TABLE

from ..._core.grad_modes import enable_grad, no_grad
from ..._core.handle import Handle
from ..._dispatch.conj_neg_bits import view_as_real
from ..._ops.calls.functions import function
from ..._ops.creation.from_data import tensor
from ..._runtime.cut import cut
from .._base import checks
from .._base.counted import rate
from .._base.groups import ParamGroup
from .._base.optimizer import Optimizer
from .line_search import Point, strong_wolfe

cat = function(TABLE["cat"])

#: What the state of the first parameter holds of one step for the next.
_KEPT = ("d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss")


class LBFGS(Optimizer):
    """L-BFGS (Liu and Nocedal, 1989, "On the limited memory BFGS method").

    As PyTorch has it, after Schmidt's minFunc: a step calls its closure several times, and looks
    at the loss after each, so it is several programs. There is one group, and the state
    of all parameters is that of the first.

    Args:
      params: tensors, or one group.
      lr: the step length, or the first that a line search tries.
      max_iter: how many directions a step goes at most.
      max_eval: how often a step calls the closure at most; 1.25 * max_iter if None.
      tolerance_grad: a step ends where no element of the gradient is larger.
      tolerance_change: a step ends where no parameter, or the loss, changes by more.
      history_size: how many of the last changes stand for the Hessian.
      line_search_fn: "strong_wolfe", or None for `lr` each time.

    Raises:
      ValueError: `lr` is negative or a tensor of several elements, or there are several groups.

    >>> import leafax
    >>> w = leafax.tensor([1.0, 2.0], requires_grad=True)
    >>> opt = leafax.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     opt.zero_grad()
    ...     loss = ((w - 3) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> opt.step(closure).item()
    5.0
    >>> w.round(decimals=4).tolist()
    [3.0, 3.0]
    """

    def __init__(
        self, params: Any, lr: float = 1, max_iter: int = 20, max_eval: int | None = None,
        tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:  # fmt: skip
        checks.rate(lr)
        super().__init__(
            params,
            {
                "lr": lr, "max_iter": max_iter,
                "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change,
                "history_size": history_size, "line_search_fn": line_search_fn,
            },
        )  # fmt: skip
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Go along several directions, and return the loss before them.

        Args:
          closure: computes the loss anew, and the gradients, and returns the loss.

        Raises:
          RuntimeError: `line_search_fn` is neither None nor "strong_wolfe".
        """
        if len(self.param_groups) != 1:
            raise AssertionError(
                f"Expected exactly one param_group, but got {len(self.param_groups)}"
            )
        (group,) = self.param_groups
        state = self.state[group["params"][0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = self._evaluated(closure)
        state["func_evals"] += 1
        gradient = self._gradient(group)
        if not _size(gradient) <= group["tolerance_grad"]:  # NaN goes on
            with np.errstate(all="ignore"):  # of numbers that PyTorch holds in tensors
                self._iterate(closure, group, state, _loss(first), gradient)
        return first

    def _iterate(
        self, closure: Callable[[], Any], group: ParamGroup, state: dict[str, Any], loss: float,
        gradient: Any,
    ) -> None:  # fmt: skip
        given, change, evals = rate(group), group["tolerance_change"], 1
        lr = _number(given)
        now: dict[str, Any] = {name: state.get(name) for name in _KEPT}
        for n in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                now |= {"d": gradient.neg(), "H_diag": 1, "old_dirs": [], "old_stps": [], "ro": []}
                now["t"] = min(1.0, 1.0 / _number(gradient.abs().sum())) * lr
                now["prev_flat_grad"] = gradient.clone()
            else:
                self._remember(now, gradient, group)
                al = state.setdefault("al", [None] * group["history_size"])
                now["d"], now["t"] = _direction(now, gradient, al), lr
                now["prev_flat_grad"].copy_(gradient)
            now["prev_loss"], d, t = loss, now["d"], now["t"]
            slope, spent = _number(gradient.dot(d)), 0
            if slope > -change:
                break
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                start = Point(0, loss, gradient, slope)
                found, spent = self._searched(closure, group, start, d, t, evals)
                now["t"] = t = found.t
                loss, gradient = found.loss, found.gradient
                self._move(group, t, d)
            else:
                self._move(group, t, d)
                if n != group["max_iter"]:
                    loss, spent = _loss(self._evaluated(closure)), 1
                    gradient = self._gradient(group)
            evals += spent
            state["func_evals"] += spent
            if (
                n == group["max_iter"] or evals >= group["max_eval"]
                or _size(gradient) <= group["tolerance_grad"]
                or _size(d * float(t)) <= change or abs(loss - now["prev_loss"]) < change
            ):  # fmt: skip
                break
        if now["t"] is lr:
            now["t"] = given
        elif isinstance(now["t"], np.generic):
            now["t"] = tensor(now["t"])
        state.update(now)

    def _evaluated(self, closure: Callable[[], Any]) -> Any:
        with enable_grad():
            return closure()

    def _remember(self, now: dict[str, Any], gradient: Any, group: ParamGroup) -> None:
        """Take the last change of gradient and parameters to the history."""
        y, s = gradient - now["prev_flat_grad"], now["d"] * float(now["t"])
        ys = y.dot(s)
        if not ys > 1e-10:
            return
        history = now["old_dirs"], now["old_stps"], now["ro"]
        for kept, new in zip(history, (y, s, 1.0 / ys), strict=True):
            if len(kept) == group["history_size"]:
                kept.pop(0)
            kept.append(new)
        now["H_diag"] = ys / y.dot(y)

    def _searched(
        self, closure: Callable[[], Any], group: ParamGroup, start: Point, d: Any, t: Any,
        evals: int,
    ) -> tuple[Point, int]:  # fmt: skip
        before = [p.clone() for p in group["params"]]

        def evaluate(t: Any) -> Point:
            self._move(group, t, d)
            loss = _loss(self._evaluated(closure))
            gradient = self._gradient(group)
            for p, x in zip(group["params"], before, strict=True):
                p.copy_(x)
            return Point(t, loss, gradient, _number(gradient.dot(d)))

        return strong_wolfe(evaluate, start, t, _size(d), group["max_eval"] - evals)

    def _gradient(self, group: ParamGroup) -> Any:
        """Return the gradients as one vector; 0 where there is none."""
        parts = []
        for p in group["params"]:
            none = p.grad is None or _is_frozen(p)
            part = p.detach().new_zeros(p.numel()) if none else p.grad.view(-1)
            parts.append(view_as_real(part).view(-1) if part.is_complex() else part)
        return cat(parts, 0)

    def _move(self, group: ParamGroup, t: Any, d: Any) -> None:
        """Move the parameters by `t` times their parts of the direction."""
        start = 0
        for p in group["params"]:
            real = view_as_real(p) if p.is_complex() else p
            end = start + real.numel()
            if not _is_frozen(p):
                real.add_(d[start:end].view_as(real), alpha=float(t))
            start = end


def _direction(now: dict[str, Any], gradient: Any, al: list[Any]) -> Any:
    """Multiply the inverse Hessian, as the history has it, by the negative gradient: two loops.

    Each turn is a program, the same one: longer histories would each be another.
    """
    changes, steps, ro = now["old_dirs"], now["old_stps"], now["ro"]
    d = gradient.neg()
    for i in reversed(range(len(changes))):
        al[i] = steps[i].dot(d) * ro[i]
        d.sub_(changes[i] * al[i])
        cut("a turn of L-BFGS")
    d = d * now["H_diag"]
    for i in range(len(changes)):
        d.add_(steps[i] * (al[i] - changes[i].dot(d) * ro[i]))
        cut("a turn of L-BFGS")
    return d


def _is_frozen(p: Any) -> bool:
    return not (p._v.requires_grad or p._given)


def _loss(x: Any) -> float:
    return float(x.item() if isinstance(x, Handle) else x)  # type: ignore[attr-defined]


def _number(x: Any) -> Any:
    """Return a number of the tensor's dtype, which rounds as the tensor does."""
    return x.numpy()[()] if isinstance(x, Handle) else x  # type: ignore[attr-defined]


def _size(x: Any) -> Any:
    return _number(x.abs().max())
