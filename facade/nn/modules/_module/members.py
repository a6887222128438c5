"""Iterating over the parameters, buffers and modules of a module, and switching their modes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

from .attributes import Base

_REPLICA = (
    "Calling .zero_grad() from a module created with nn.DataParallel() has no effect. The "
    "parameters are copied (in a differentiable manner) from the original module. This means they "
    "are not leaf nodes in autograd and so don't accumulate gradients. If you need gradients in "
    "your forward method, consider using autograd.grad instead."
)


class Members(Base):
    """Methods that go over all members of a module."""

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen = set()
        modules: Any = [(prefix, self)]
        if recurse:
            modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        for path, module in modules:
            for name, x in get_members_fn(module):
                if x is None or x in seen:
                    continue
                if remove_duplicate:
                    seen.add(x)
                yield f"{path}.{name}" if path else name, x

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        """Yield the parameters, each once.

        Args:
          recurse: with those of all modules below.
        """
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Yield the dotted path and the parameter.

        Args:
          prefix: what paths begin with.
          recurse: with those of all modules below.
          remove_duplicate: each parameter once, by its first path.
        """
        yield from self._named_members(
            lambda module: module._parameters.items(),
            prefix=prefix,
            recurse=recurse,
            remove_duplicate=remove_duplicate,
        )

    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        """Yield the buffers, each once.

        Args:
          recurse: with those of all modules below.
        """
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Yield the dotted path and the buffer.

        Args:
          prefix: what paths begin with.
          recurse: with those of all modules below.
          remove_duplicate: each buffer once, by its first path.
        """
        yield from self._named_members(
            lambda module: module._buffers.items(),
            prefix=prefix,
            recurse=recurse,
            remove_duplicate=remove_duplicate,
        )

    def children(self) -> Iterator[Any]:
        """Yield the children, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """Yield the name and the child, each child once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
        """Yield this module and all below, each once unless `remove_duplicate` is False."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Yield the dotted path and the module, for this one and all below.

        Args:
          memo: modules that are left out.
          prefix: what paths begin with.
          remove_duplicate: each module once, by its first path.
        """
        if memo is None:
            memo = set()
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, path, remove_duplicate)

    def apply(self, fn: Callable[[Any], Any]) -> Any:
        """Call `fn` with every module below, then with this one; return it."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Any:
        """Switch this module and all below to training, or to evaluation; return it."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Any:
        """Switch this module and all below to evaluation; return it."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Freeze or unfreeze all parameters; return the module."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or set them to zero."""
        if getattr(self, "_is_replica", False):
            warnings.warn(_REPLICA, stacklevel=2)
        for param in self.parameters():
            if param.grad is None:
                continue
            if set_to_none:
                param.grad = None
                continue
            if param.grad.grad_fn is not None:
                param.grad.detach_()
            else:
                param.grad.requires_grad_(False)
            param.grad.zero_()
