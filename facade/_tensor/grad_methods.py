"""Gradients of `Tensor`: `backward()`, `grad` and what keeps it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any
from weakref import ref

from .._autograd.backward import backward as _backward
from .._autograd.graph import edges
from .._autograd.graph import grad_dtype as _grad_dtype
from .._core.transforms_running import active
from .._core.trie import NODE, local
from .._storage.enter import was_leaf
from .._tracing.jax_transforms import refuse_gradient
from .hook_methods import HooksMixin


class GradMixin(HooksMixin):
    """The methods of gradients."""

    @property
    def grad(self) -> Any:
        """Return the accumulated gradient, None before the first `backward()`."""
        if self._grad is None and self._interior() and not self.retains_grad:
            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its "
                ".grad attribute won't be populated during autograd.backward(). If you indeed "
                "want the .grad field to be populated for a non-leaf Tensor, use .retain_grad() "
                "on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure "
                "you access the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 "
                "for more information.",
                UserWarning,
                stacklevel=2,
            )
        return self._grad

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is None:
            self._grad = None
            return
        _grad_dtype.check(self, value)
        refuse_gradient(self)
        if value is not self._grad:  # `p.grad *= 2` puts back what was there
            self._note_given(not self._tracked)
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def grad_dtype(self) -> Any:
        """Return the dtype that gradients of this leaf are cast to; None for any."""
        return _grad_dtype.get_grad_dtype(self)

    @grad_dtype.setter
    def grad_dtype(self, value: Any) -> None:
        _grad_dtype.set_grad_dtype(self, value)

    @property
    def retains_grad(self) -> bool:
        """Return True for a non-leaf whose `.grad` will be filled."""
        return self._retains

    def retain_grad(self) -> None:
        """Make `backward()` fill this non-leaf's `.grad` too.

        Raises:
          RuntimeError: for a tensor that does not require grad.
        """
        if not self.requires_grad:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if active.depth:
            raise RuntimeError(
                "You are attempting to call Tensor.retain_grad() inside of a function being "
                "transformed by a functorch transform. This is unsupported, please attempt to use "
                "the functorch transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call "
                "retain_grad() outside of a function being transformed instead."
            )
        if was_leaf(self) or self.is_leaf or self.retains_grad:
            return
        self._retains = True
        if self._v.index >= 0 and self._trace is local.trace and self._v.edge.role == NODE:
            edges.retain(self, self._v.edge, local.trace)
        else:
            fn, out = edges.gradient_edge(self)
            fn.retains = [*fn.retains_of(), (out, ref(self))]

    def backward(
        self,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Sequence[Any] | Any = None,
    ) -> None:
        """Accumulate the gradients of this tensor into the leaves of its graph.

        Args:
          gradient: gradient of some loss with respect to this tensor, of its shape; may be
            left out for a tensor of one element.
          retain_graph: keep what the graph saved; defaults to `create_graph`.
          create_graph: record the gradients, so that they can be differentiated.
          inputs: accumulate into these only.
        """
        _backward(self, gradient, retain_graph, create_graph, inputs=inputs)
