"""Looking into a model: watching and hooks by path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafax.autograd.graph import RemovableHandle

from .._models.adapted_call import adapted
from .._models.by_id import ById
from .._models.calls import record
from .._models.kernel import Kernel, flax_kernel
from .watch import Watched, Watchers


class Looking:
    """The part of a model that watches submodules."""

    _watchers: Watchers | None = None

    def _watching(self) -> Watchers:
        if self._watchers is None:
            self._watchers = Watchers()
        return self._watchers

    def _watching_call(self) -> Watchers | None:
        """Return the watchers of the call that is about to be recorded."""
        return self._watchers

    _adapters: ById | None = None  # low-rank factors, by kernel

    def _adapted_by(self) -> ById:
        if self._adapters is None:
            self._adapters = ById()
        return self._adapters

    def _kernel(self, path: str, t: Any, stacked: int) -> Kernel | None:
        """Tell how a parameter is laid out; None if it is no kernel."""
        return flax_kernel(path, t, stacked)

    def _record(self, pure: Any, own: Any, leaves: Any, args: Any, kwargs: Any) -> Any:
        """Record a call; `leaves` may stand in for the model's own."""
        if self._adapters:
            pure, leaves = adapted(pure, own, leaves, self._adapters)
        watchers = self._watching_call()
        if watchers:
            return watchers.call(self, pure, leaves, args, kwargs)
        return record(pure, leaves, args, kwargs)

    def _hooked(self, kind: str, path: Any, hook: Any) -> RemovableHandle:
        """Register a hook: on the submodules at `path`, or on this one if only a hook is given."""
        path, hook = ("", path) if hook is None else (path, hook)
        if not callable(hook):
            raise TypeError(
                f"a hook is a function, got `{type(hook).__name__}`: "
                f"`register_{kind}_hook(hook)` or `register_{kind}_hook(path, hook)`"
            )
        return self._hook(kind, path, hook)

    def _hook(self, kind: str, path: Any, hook: Callable[..., Any]) -> RemovableHandle:
        return self._watching().hook(kind, path, hook)

    def watch(self, *what: Any, grad: bool = True) -> Watched:
        """Keep the activations of submodules in each call from now on, and their gradients.

        The call stays in the step's compiled program. Without watchers it costs nothing.

        Args:
          what: paths of submodules: globs (`"encoder.block_*"`, or with slashes), compiled regular
            expressions that match whole paths.
          grad: activations retain their gradients, as with `retain_grad`: `.grad` is there after
            `backward()`. What no gradient flows to (the part before it is frozen) becomes a leaf
            that requires grad.

        Returns:
          A mapping from path to activation, renewed by each call; `remove()`, or the end of a
          `with` block, ends it. What a submodule inside of `nn.scan` returns comes stacked, one
          slice an iteration, and so does its gradient.

        Raises:
          ValueError: at the next call: nothing matches; the message has the nearest paths.

        >>> import leafax
        >>> from flax import nnx
        >>> from leafax.adapters.nnx import Model
        >>> rngs = nnx.Rngs(0)
        >>> model = Model(nnx.Sequential(nnx.Linear(3, 4, rngs=rngs), nnx.Linear(4, 1, rngs=rngs)))
        >>> with model.watch("layers/0") as seen:
        ...     model(leafax.ones(2, 3)).sum().backward()
        >>> seen["layers/0"].grad.shape
        torch.Size([2, 4])
        """
        return self._watching().watch(what, grad)

    def register_forward_hook(self, path: Any, hook: Any = None) -> RemovableHandle:
        """Call `hook(part, args, output)` whenever a submodule was called.

        Called with a hook alone it is for this model itself: `model.conv.register_forward_hook(f)`.

        Args:
          path: as in `watch`, but not inside of `nn.scan`: a loop's body is no Python.
          hook: may return another output, of the same shapes and dtypes. `part` is the submodule
            as a model, or its path if it has no parameters; `args` are its positional ones.

        Returns:
          A handle with `remove()`.
        """
        return self._hooked("forward", path, hook)

    def register_forward_pre_hook(self, path: Any, hook: Any = None) -> RemovableHandle:
        """Call `hook(part, args)` before a submodule is called; it may return other args."""
        return self._hooked("forward_pre", path, hook)

    def register_full_backward_hook(self, path: Any, hook: Any = None) -> RemovableHandle:
        """Call `hook(part, grad_input, grad_output)` when a submodule's gradients are there.

        It may return other gradients of the (positional) inputs.
        """
        return self._hooked("full_backward", path, hook)
