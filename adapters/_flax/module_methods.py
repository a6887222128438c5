"""Methods of `nn.Module` that Flax models have: moving, casting, and the parts by name."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

import jax

import leafax

from .._models.select import Tensors
from .child import FlaxPart


class ModuleMethods:
    """A model whose tensors move as a module's do, and that lists its parts."""

    @abstractmethod
    def _tensors(self) -> tuple[Tensors, Tensors]:
        """Return parameters and buffers by path."""

    @abstractmethod
    def get_submodule(self, path: str) -> Any:
        """Return the part of the model at a dotted path."""

    def _convert(self, method: str, *args: Any, **kwargs: Any) -> Self:
        """Do with all tensors what a method of modules does; they stay the same objects.

        Raises:
          RuntimeError: Flax's layers cannot compute in 64 bits.
        """
        wide = method == "double" or any(
            x in (leafax.float64, leafax.complex128)
            for x in (*args, *kwargs.values())
            if isinstance(x, leafax.dtype)
        )
        if wide and not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
            raise RuntimeError(
                "JAX computes Flax's layers in 32 bits, whatever their parameters are: call "
                '`jax.config.update("jax_enable_x64", True)` first'
            )
        holder = FlaxPart()
        holder._parameters, holder._buffers = map(dict, self._tensors())
        getattr(holder, method)(*args, **kwargs)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move all tensors, and cast those that are floating point or complex.

        Args:
          args, kwargs: as for `Tensor.to`: a device, a dtype, both, or a tensor that has them.

        >>> import jax, leafax
        >>> from flax import linen
        >>> from leafax.adapters.linen import Model
        >>> model = Model.from_batch(linen.Dense(2), leafax.ones(1, 3))
        >>> model.to(leafax.bfloat16).get_parameter("kernel").dtype
        torch.bfloat16
        """
        return self._convert("to", *args, **kwargs)

    def cuda(self, device: Any = None) -> Self:
        """Move all tensors to the GPU."""
        return self._convert("cuda", device)

    def cpu(self) -> Self:
        """Move all tensors to the CPU."""
        return self._convert("cpu")

    def float(self) -> Self:
        """Cast what is floating point to float32."""
        return self._convert("float")

    def double(self) -> Self:
        """Cast what is floating point to float64."""
        return self._convert("double")

    def half(self) -> Self:
        """Cast what is floating point to float16."""
        return self._convert("half")

    def bfloat16(self) -> Self:
        """Cast what is floating point to bfloat16."""
        return self._convert("bfloat16")

    def _known_parts(self) -> Iterable[str]:
        """Return paths of parts that are known, also of those without tensors."""
        return ()

    def _part_paths(self) -> Iterator[str]:
        """Yield the paths of the parts, each after that of which it is a part."""
        seen = dict.fromkeys(self._known_parts())
        for tensors in self._tensors():
            for path in tensors:
                names = path.split(".")[:-1]
                seen.update(dict.fromkeys(".".join(names[:n]) for n in range(1, len(names) + 1)))
        return iter(sorted(seen, key=_order_of(list(seen))))

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Yield the model and all its parts, with their dotted paths.

        Args:
          memo: parts that were listed, which are left out.
          prefix: what paths begin with.
          remove_duplicate: list a part that stands in several places once.
        """
        memo = set() if memo is None else memo
        for path in ("", *self._part_paths()):
            part = self if path == "" else self.get_submodule(path)
            if not isinstance(part, ModuleMethods) or (remove_duplicate and part in memo):
                continue
            if remove_duplicate:
                memo.add(part)
            yield ".".join(filter(None, (prefix, path))), part

    def modules(self) -> Iterator[Any]:
        """Yield the model and all its parts."""
        return (part for _, part in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """Yield the parts right below the model, with their names."""
        return ((path, part) for path, part in self.named_modules() if path and "." not in path)

    def children(self) -> Iterator[Any]:
        """Yield the parts right below the model."""
        return (part for _, part in self.named_children())

    def apply(self, fn: Callable[[Any], None]) -> Self:
        """Call a function with each part, from the inside out, and with the model."""
        for part in self.children():
            part.apply(fn)
        fn(self)
        return self


def _order_of(paths: list[str]) -> Callable[[str], tuple[int, ...]]:
    """Return a key that sorts paths as `nn.Module` lists them: what is within one follows it."""
    place = {path: k for k, path in enumerate(paths)}

    def key(path: str) -> tuple[int, ...]:
        names = path.split(".")
        return tuple(place[".".join(names[:n])] for n in range(1, len(names) + 1))

    return key
