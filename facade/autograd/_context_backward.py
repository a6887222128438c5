"""The context of an `autograd.Function` in a backward pass, where it is a node of the graph."""

from __future__ import annotations

from typing import Any

from .._autograd.graph.fit_gradient import Kind, fit, materialized
from .._autograd.graph.grad_dtype import wanted
from .._autograd.saved_hooks.context_saved import SavesTensors
from .._core.handle import Handle


class ContextInBackward(SavesTensors):
    """Call the user's `backward` and check what it returns.

    Attributes:
      _inputs, _outputs: known facts of the tensors that forward took, and of its results.
      _is_tensor: for each argument of forward.
      _plain_places: which outputs need no gradient.
      _materialize, _materialize_non_diff_grads: missing gradients arrive as zeros.
    """

    _forward_cls: Any
    dirty_tensors: tuple[Any, ...] | None
    non_differentiable: tuple[Any, ...] | None
    _inputs: list[Any]
    _outputs: list[Any]
    _is_tensor: tuple[bool, ...]
    _plain_places: set[int]
    _materialize: bool
    _materialize_non_diff_grads: bool

    def output_kinds(self) -> list[Any]:
        """Return the known facts of the outputs, None for one that is no tensor."""
        return self._outputs

    def _forget(self) -> None:
        """Drop what only the call needed, as it may close a cycle."""
        self.dirty_tensors = self.non_differentiable = self.saved_for_forward = None

    def apply_custom(self, grads: list[Any], needed: set[Any]) -> list[Any]:
        """Call the user's `backward` and return a checked gradient for each tensor of forward."""
        boxed = self._forward_cls.boxed_grads_call
        arrived, grads = grads, list(grads) + [None] * (len(self._outputs) - len(grads))
        if boxed and not self.post_hooks:  # the one list that holds the gradients
            arrived[:] = [None] * len(arrived)
        del arrived
        if self._materialize:
            grads = [
                materialized(o) if g is None and o is not None and self._is_materialized(k) else g
                for k, (g, o) in enumerate(zip(grads, self._outputs, strict=True))
            ]
        self.arrived: Any = () if boxed else grads  # a checkpoint computes nothing again before
        try:
            rule = self._forward_cls._backward_rule
            result = rule()(self, grads) if boxed else self.apply(*grads)
        finally:
            self.arrived = ()
        results = list(result) if isinstance(result, tuple) else [result]
        n = len(self._is_tensor)
        if len(results) > n and all(r is None for r in results[n:]):
            results = results[:n]
        if len(results) != n:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {n}, "
                f"got {len(results)})"
            )
        passed = []
        for i, (r, is_tensor) in enumerate(zip(results, self._is_tensor, strict=True)):
            if is_tensor:
                if r is not None and not isinstance(r, Handle):
                    raise RuntimeError(f"expected Variable or None (got {type(r).__name__})")
                passed.append(r)
            elif r is not None:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different than None at position "
                    f"{i + 1}, but the corresponding forward input was not a Variable"
                )
        return [
            r if e is None or r is None else self._fit(i, r, kind)  # hooks see the former too
            for i, (r, e, kind) in enumerate(zip(passed, self._edges, self._inputs, strict=True))
        ]

    def _is_materialized(self, k: int) -> bool:
        return self._materialize_non_diff_grads or k not in self._plain_places

    def apply(self, *grads: Any) -> Any:
        """Call the Function's `backward` (or `vjp`) on the outputs' gradients."""
        rule = self._forward_cls._backward_rule()
        return rule(self, list(grads)) if self._forward_cls.boxed_grads_call else rule(self, *grads)

    def _fit(self, i: int, grad: Any, kind: Any) -> Any:
        """Fit `grad` to the shape and dtype of input `i`, as the engine does."""
        edge = self._edges[i]
        if edge is not None and edge[0].accumulates and edge[0].variable._grad_dtype is not None:
            kind = Kind(kind.shape, wanted(edge[0].variable) or grad._v.dtype)
        return fit(self.name(), i, grad, kind)

    def free(self) -> None:
        """Drop the saved tensors, since a backward pass has run."""
        if self._saved:
            self.freed, self._saved = True, None
