"""Base of the models of both Flax libraries: leaf tensors by dotted path, and freezing.

A model holds its Flax variables as leafax tensors. Parameters are leaves that require grad;
everything else that the module carries (statistics, caches, random state) is a buffer. The
subclasses say how a call becomes one pure function of those leaves; `calls.py` records it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp

import leafax

from .._inside.looking import Looking
from .._models.calls import Borrowed
from .._models.freezing import Freezing
from .._models.freezing import differentiable as differentiable
from .._models.recomputing import Recomputing
from .._models.select import Tensors, near
from .child import FlaxChild
from .module_methods import ModuleMethods


class Incompatible(NamedTuple):
    """Names that `load_state_dict` found no place or no value for."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class Model(Freezing, Looking, Recomputing, ModuleMethods):
    """Base of `adapters.linen.Model` and `adapters.nnx.Model`."""

    # ------------------------------------------------------------ what subclasses say

    @abstractmethod
    def _name(self) -> str:
        """Return the name of the module's class."""

    @abstractmethod
    def _loan(self) -> Borrowed:
        """Return the arrays that the model was made of, until a step replaces them."""

    @abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module on tensors, as one recorded op."""

    @abstractmethod
    def _call_on(self, swap: Mapping[int, Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """Call with other tensors in place of those with these ids."""

    @abstractmethod
    def mask(self) -> Any:
        """Return a mask of the Flax parameters for plain JAX and optax: True where trainable."""

    # ------------------------------------------------------------ tensors by path

    def named_parameters(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Any]]:
        """Yield each parameter with its dotted path; a shared one appears once."""
        return _named(self._tensors()[0], prefix, recurse)

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        """Yield each parameter, frozen ones too."""
        return (t for _, t in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Any]]:
        """Yield each tensor that is no parameter, with its dotted path."""
        return _named(self._tensors()[1], prefix, recurse)

    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        """Yield each tensor that is no parameter: statistics, caches, random state."""
        return (t for _, t in self.named_buffers(recurse=recurse))

    def get_parameter(self, path: str) -> Any:
        """Return the parameter at a dotted path."""
        return _get(self._tensors()[0], path, "parameter")

    def get_buffer(self, path: str) -> Any:
        """Return the buffer at a dotted path."""
        return _get(self._tensors()[1], path, "buffer")

    def get_submodule(self, path: str) -> Any:
        """Return the part of the model at a dotted path; `""` is the model itself."""
        part: Any = self
        for name in path.split(".") if path else ():
            part = part[int(name)] if name.isdigit() else getattr(part, name)
        return part

    # ------------------------------------------------------------ modes

    @abstractmethod
    def compute_in(self, dtype: Any) -> Self:
        """Compute in another dtype, as autocast does; parameters and gradients keep theirs.

        Args:
          dtype: `leafax.bfloat16` for instance; None ends it. It is what layers that have a
            `dtype` and were given none compute in. Layers that were given one keep it. Inside of
            `leafax.autocast` a model that was told nothing computes in autocast's dtype.
        """

    def eval(self) -> Self:
        """Switch to evaluation: keep all units, normalise by the statistics, update none."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Freeze or unfreeze all parameters; returns the model."""
        return self.unfreeze() if requires_grad else self.freeze()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, or set them to zero."""
        for p in self.parameters():
            if set_to_none:
                p.grad = None
            elif p.grad is not None:
                p.grad = leafax.zeros_like(p.grad)

    def functional_call(self, tensors: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Call the model with other tensors in place of its own, by path.

        What the call updates among them (statistics) is written into the given tensors.

        Args:
          tensors: tensors by path of a parameter or buffer, in its shape; the rest are its own.
          args, kwargs: of the call.

        Raises:
          AttributeError: a path that the model does not have; the message has the nearest ones.
        """
        mine = {**self._tensors()[0], **self._tensors()[1]}
        swap = {id(_get(mine, name, "tensor")): t for name, t in tensors.items()}
        return self._call_on(swap, args, kwargs)

    # ------------------------------------------------------------ saving

    def state_dict(self) -> Tensors:
        """Return all tensors by path, as they are now.

        Unlike PyTorch's, the values do not follow the model as it trains on: arrays are
        immutable, so a snapshot costs no copy.
        """
        self._lend()
        parameters, buffers = self._tensors()
        return {name: leafax.as_tensor(t.jax()) for name, t in (parameters | buffers).items()}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> Incompatible:
        """Take over values by path: tensors, JAX or NumPy arrays.

        Args:
          state_dict: values by path; their shapes must agree, dtypes are converted.
          strict: raise for paths that are missing or unexpected.

        Returns:
          `(missing_keys, unexpected_keys)`.

        Raises:
          RuntimeError: with all that does not fit; then nothing was loaded.
        """
        parameters, buffers = self._tensors()
        mine = parameters | buffers
        found = Incompatible(
            [name for name in mine if name not in state_dict],
            [name for name in state_dict if name not in mine],
        )
        given = {n: leafax.as_tensor(v) for n, v in state_dict.items() if n in mine}
        errors = _mismatches(mine, given)
        if strict:
            errors = [*_listed("Unexpected", found[1]), *_listed("Missing", found[0]), *errors]
        if errors:
            text = "\n\t".join(errors)
            raise RuntimeError(f"Error(s) in loading state_dict for {self._name()}:\n\t{text}")
        for name, value in given.items():
            mine[name].data = value.to(mine[name].dtype)
        self._lend()
        return found

    def _unsettle(self) -> None:
        self._loan().settled = False

    _child: FlaxChild | None = None

    def __as_nn_module__(self) -> FlaxChild:
        """Return the child that a `leafax.nn.Module` registers when it is given this model."""
        if self._child is None:
            self._child = FlaxChild(self)
        return self._child

    def _lend(self) -> None:
        """Note that all arrays may be held elsewhere too."""
        for parameter, tensors in zip((True, False), self._tensors(), strict=True):
            for t in tensors.values():
                self._loan().lend(t, parameter)

    def __repr__(self) -> str:
        parameters, buffers = self._tensors()
        total = sum(p.numel() for p in parameters.values())
        trained = sum(p.numel() for p in parameters.values() if p.requires_grad)
        return (
            f"{self._name()}({len(parameters)} parameters of {total:,} numbers, {trained:,} "
            f"trainable; {len(buffers)} buffers; {'training' if self.training else 'evaluating'})"
        )


def compute_dtype(dtype: Any) -> Any:
    """Return JAX's dtype for a leafax one, or None."""
    if dtype is None:
        return None
    if not getattr(dtype, "is_floating_point", False):
        raise TypeError(f"a model computes in a floating point dtype, got {dtype!r}")
    return dtype.np


def autocast_dtype() -> Any:
    """Return JAX's dtype for what autocast computes in, or None where it is off."""
    dtype = leafax.amp.compute_dtype()
    return None if dtype is None else dtype.np


def to_tensor(leaf: Any) -> Any:
    """Make a Flax leaf a tensor: a JAX array is held without a copy, NumPy's is copied."""
    return leafax.as_tensor(leaf if isinstance(leaf, jax.Array) else jnp.array(leaf))


def _named(tensors: Tensors, prefix: str, recurse: bool) -> Iterator[tuple[str, Any]]:
    before = f"{prefix}." if prefix else ""
    return ((before + n, t) for n, t in tensors.items() if recurse or "." not in n)


def _get(tensors: Tensors, path: str, kind: str) -> Any:
    if path not in tensors:
        raise AttributeError(f"no {kind} `{path}`; the nearest are {near(path, tensors)}")
    return tensors[path]


def _listed(kind: str, names: list[str]) -> list[str]:
    listed = ", ".join(f'"{name}"' for name in names)
    return [f"{kind} key(s) in state_dict: {listed}. "] if names else []


def _mismatches(mine: Tensors, given: Tensors) -> list[str]:
    return [
        f"size mismatch for {name}: copying a param with shape {value.shape} from checkpoint, the "
        f"shape in current model is {mine[name].shape}."
        for name, value in given.items()
        if value.shape != mine[name].shape
    ]
