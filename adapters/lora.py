"""Low-rank adapters (LoRA, Hu et al. 2021) on the kernels of a model, by path.

The model stays as it is: its tree, its checkpoint, its module. A kernel `w` of shape `(..., out)`
acts as `w + alpha / rank * a @ b`, where `a` is `(inputs, rank)` and `b` `(rank, outputs)`. Dense
layers, attention's projections, convolutions and einsums never build that sum: they add `x @ a @ b`
to their output, so neither it nor its gradient exists. Others (embeddings, grouped convolutions,
layers under `nn.scan`, attention of `leafax.nn`) compute it inside the step. The kernels of
`leafax.nn` have their outputs first: they act as `w + alpha / rank * (a @ b).mT`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from jax.sharding import PartitionSpec

import leafax
from leafax.distributed.sharding import place_tensors, sharding_of
from leafax.functional.execution.tracebacks import end_at_callers

from ._models.adapted_call import Adapted as Adapted  # pickles of 0.1.0 name them in here
from ._models.adapted_call import adapted as adapted
from ._models.kernel import Kernel
from ._models.select import choose
from ._modules.module import model_of


class Factors:
    """One kernel's adapter.

    Attributes:
      path, kernel: of the kernel.
      a, b: tensors that train, `(inputs, rank)` and `(rank, outputs)`, behind the dimensions of
        a stacked kernel; `b` starts at zero.
      scale: `alpha / rank`.
      turned: the kernel's outputs come before its inputs.
    """

    def __init__(
        self, path: str, kernel: Any, rank: int, alpha: float, layout: Kernel, stacked: int
    ) -> None:
        stack, shape = tuple(kernel.shape[:stacked]), tuple(kernel.shape[stacked:])
        n = len(shape) - layout.inputs if layout.turned else layout.inputs
        rows, columns = math.prod(shape[:n]), math.prod(shape[n:])
        if layout.turned:
            rows, columns = columns, rows
        self.path, self.kernel, self.scale = path, kernel, alpha / rank
        self.turned = layout.turned
        self.beside = not stacked and path.rpartition(".")[2] == "kernel"
        with leafax.no_grad():
            a = leafax.randn(*stack, rows, rank, dtype=kernel.dtype) / math.sqrt(rows)
        self.a = a.requires_grad_()
        self.b = leafax.zeros(*stack, rank, columns, dtype=kernel.dtype, requires_grad=True)
        self.follow_kernel()

    def follow_kernel(self) -> None:
        """Place the factors on the kernel's mesh, if it lies on one, split as it is."""
        where = sharding_of(self.kernel)
        if where is None:
            return
        rows, columns = None, None
        if self.kernel.dim() == 2:
            rows, columns = (*where.spec, None, None)[:2]
        if self.turned:
            rows, columns = columns, rows
        specs = {"lora_a": PartitionSpec(rows), "lora_b": PartitionSpec(None, columns)}
        place_tensors({"lora_a": self.a, "lora_b": self.b}, where.mesh, specs)

    def added_to(self, kernel: Any) -> Any:
        """Return a kernel with the adapter in it."""
        more = self.a @ self.b
        more = (more.mT if self.turned else more).reshape(kernel.shape) * self.scale
        return kernel + more.to(kernel.dtype)

    def merged(self) -> Any:
        """Return the adapter's own kernel with it."""
        with leafax.no_grad():
            return self.added_to(self.kernel)


class Lora:
    """The adapters of one model; `add` makes them.

    Attributes:
      factors: by path of the kernel.
    """

    def __init__(self, model: Any, factors: dict[str, Factors]) -> None:
        self.factors = factors
        self._owner = model_of(model)._adapted_by()
        self._base: dict[str, Any] = {}  # kernels before `merge`
        self._owner.update((f.kernel, f) for f in factors.values())

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """Yield `path.lora_a` and `path.lora_b` of each kernel."""
        for path, f in self.factors.items():
            yield f"{path}.lora_a", f.a
            yield f"{path}.lora_b", f.b

    def parameters(self) -> Iterator[Any]:
        """Yield the tensors that train, for the optimizer, beside those of the model."""
        return (t for _, t in self.named_parameters())

    def state_dict(self) -> dict[str, Any]:
        """Return a snapshot of the adapter alone, by name."""
        return {name: t.detach().clone() for name, t in self.named_parameters()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over what `state_dict()` returned, tensors or arrays.

        Raises:
          RuntimeError: names or shapes that do not fit; then nothing was loaded.
        """
        mine = dict(self.named_parameters())
        wrong = [f'missing "{n}"' for n in mine.keys() - state_dict.keys()]
        wrong += [f'unexpected "{n}"' for n in state_dict.keys() - mine.keys()]
        wrong += [
            f'"{n}" has shape {list(state_dict[n].shape)} where {list(t.shape)} is needed'
            for n, t in mine.items()
            if n in state_dict and tuple(state_dict[n].shape) != tuple(t.shape)
        ]
        if wrong:
            raise RuntimeError(f"the adapter does not fit: {'; '.join(sorted(wrong))}")
        for name, t in mine.items():
            t.data = leafax.as_tensor(state_dict[name]).to(t.dtype)

    def merge(self) -> None:
        """Put the adapters into the kernels; calls cost what the model's do, nothing trains.

        Raises:
          RuntimeError: they are merged already.
        """
        if self._base:
            raise RuntimeError("the adapters are merged already: `unmerge()` takes them out")
        for path, f in self.factors.items():
            self._base[path] = f.kernel.detach().clone()
            f.kernel.data = f.merged()
            self._owner.pop(f.kernel, None)

    def unmerge(self) -> None:
        """Take the adapters out again: the kernels are what they were, bit for bit.

        Raises:
          RuntimeError: they are not merged.
        """
        if not self._base:
            raise RuntimeError("the adapters are not merged")
        for path, f in self.factors.items():
            f.kernel.data = self._base[path]
            self._owner[f.kernel] = f
        self._base = {}

    def remove(self) -> None:
        """Take the adapters off the model; what was merged stays."""
        for f in self.factors.values():
            self._owner.pop(f.kernel, None)

    def __repr__(self) -> str:
        numbers = sum(t.numel() for t in self.parameters())
        return f"Lora({len(self.factors)} kernels, {numbers:,} numbers)"


def add(
    model: Any, patterns: Any, *, rank: int = 8, alpha: float | None = None,
    inputs: int | None = None, stacked: int = 0, freeze: bool = True,
) -> Lora:  # fmt: skip
    """Give kernels of a model low-rank adapters.

    Args:
      model: of `adapters.linen` or `adapters.nnx`, or a `leafax.nn.Module`.
      patterns: globs or what else `freeze` takes, alone or in a list; or a mapping from them to
        options that differ: `{"**.query": {"rank": 16}, "**.mlp": {"rank": 4, "alpha": 8}}`.
        Of what they select, parameters of two and more dimensions get adapters.
      rank: the adapters' rank.
      alpha: the adapters count `alpha / rank`; `2 * rank` by default.
      inputs: how many of a kernel's dimensions are inputs. By default all but the last, and one
        for `query`, `key` and `value` kernels of three dimensions. In the layers of `leafax.nn`
        they are the last ones, all but the first by default.
      stacked: how many leading dimensions of a kernel number its layers: 1 for kernels under
        `nn.scan` or `nn.vmap`. Each layer then has factors of its own.
      freeze: freeze all the model's parameters; unfreeze a new head afterwards.

    Returns:
      The adapters; their parameters are not among the model's.

    Raises:
      ValueError: nothing to adapt, a kernel that has an adapter already, a rank below 1.

    >>> import leafax
    >>> from flax import nnx
    >>> from leafax.adapters import lora, nnx as models
    >>> model = models.Model(nnx.Linear(16, 8, rngs=nnx.Rngs(0)))
    >>> adapter = lora.add(model, "kernel", rank=2)
    >>> optimizer = leafax.optim.AdamW(adapter.parameters(), lr=1e-3)
    >>> {name: list(p.shape) for name, p in adapter.named_parameters()}
    {'kernel.lora_a': [16, 2], 'kernel.lora_b': [2, 8]}
    """
    model = model_of(model)
    parameters = model._tensors()[0]
    if not isinstance(patterns, Mapping):
        patterns = {tuple(patterns) if isinstance(patterns, list) else patterns: {}}
    found: dict[str, Factors] = {}
    taken = model._adapted_by()
    for what, options in patterns.items():
        several = what if isinstance(what, tuple) else (what,)
        chosen = choose(parameters, several, model._classes)
        k = options.get("stacked", stacked)
        kernels = [n for n in parameters if n in chosen and model._kernel(n, parameters[n], k)]
        if not kernels:
            raise ValueError(
                f"{', '.join(sorted(chosen))}: no kernel among them, an adapter needs two "
                f"dimensions"
            )
        for name in kernels:
            if name in found:
                continue
            kernel = parameters[name]
            if kernel in taken:
                raise ValueError(f"`{name}` has an adapter already")
            r = options.get("rank", rank)
            if r < 1:
                raise ValueError(f"the rank of `{name}` must be at least 1, got {r}")
            scale = options.get("alpha", alpha)
            if kernel.dim() - k < 2:
                raise ValueError(
                    f"`{name}` has {kernel.dim()} dimensions, so {k} of them cannot number layers: "
                    f"an adapter needs two more"
                )
            layout = model._kernel(name, kernel, k)
            n = options.get("inputs", inputs)
            layout = layout if n is None else layout._replace(inputs=n)
            found[name] = Factors(name, kernel, r, 2 * r if scale is None else scale, layout, k)
    if freeze:
        model.freeze()
    return Lora(model, found)


__all__ = ["Factors", "Lora", "add"]


end_at_callers(__name__)
