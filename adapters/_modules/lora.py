"""Low-rank factors on the parameters of an `nn.Module`: its classes are derived from for that.

An adapted module's class is one derived from its own. There the name of an adapted parameter means
the sum, wherever it is read, and the layers that are linear in it call without building the sum.
`_parameters`, and so `state_dict()`, still hold the parameter alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import leafax
import leafax.nn.functional as F
from leafax import nn

from .._flax.child import FlaxChild
from .._models.kernel import Kernel

_FIELD = "_low_rank"  # of an adapted module: factors by the parameter's name
_BIASES = ("bias", "bias_k", "bias_v")
_INPUTS_FIRST = (
    nn.Embedding, nn.EmbeddingBag, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d,
)  # fmt: skip


def kernel_of(module: nn.Module, name: str, t: Any) -> Kernel | None:
    """Tell how a module's own parameter is laid out; None if it is no kernel."""
    if t.dim() < 2 or name in _BIASES:
        return None
    if isinstance(module, _INPUTS_FIRST):
        return Kernel(1)
    return Kernel(t.dim() - 1, turned=True)


class AdaptersOf(MutableMapping[Any, Any]):
    """The factors of a module's parameters, by parameter; setting one adapts who has it."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module

    def _owners(self, kernel: Any) -> list[tuple[nn.Module, str]]:
        return [
            (module, name)
            for module in self.module.modules()
            for name, t in module._parameters.items()
            if t is kernel
        ]

    def _flax(self, kernel: Any) -> Any:
        """Return the adapters of the Flax model that a parameter belongs to, if one does."""
        for child in self.module.modules():
            if isinstance(child, FlaxChild) and any(t is kernel for t in child.parameters()):
                return child.model._adapted_by()
        return None

    def __getitem__(self, kernel: Any) -> Any:
        flax = self._flax(kernel)
        if flax is not None:
            return flax[kernel]
        for module, name in self._owners(kernel):
            if name in module.__dict__.get(_FIELD, ()):
                return module.__dict__[_FIELD][name]
        raise KeyError(kernel)

    def __setitem__(self, kernel: Any, factors: Any) -> None:
        flax = self._flax(kernel)
        if flax is not None:
            flax[kernel] = factors
            return
        for module, name in self._owners(kernel):
            _adapt(module, {**module.__dict__.get(_FIELD, {}), name: factors})

    def __delitem__(self, kernel: Any) -> None:
        flax = self._flax(kernel)
        if flax is not None:
            del flax[kernel]
            return
        self[kernel]
        for module, name in self._owners(kernel):
            _adapt(module, {n: f for n, f in module.__dict__[_FIELD].items() if n != name})

    def __iter__(self) -> Iterator[Any]:
        return (p for p in self.module.parameters() if p in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _adapt(module: nn.Module, factors: dict[str, Any]) -> None:
    """Give a module these factors and no others."""
    base: Any = getattr(type(module), "_adapted", type(module))
    if factors:
        module.__dict__[_FIELD] = factors
        module.__class__ = _derived(base, tuple(sorted(factors)))
    else:
        module.__dict__.pop(_FIELD, None)
        module.__class__ = base


@functools.cache
def _derived(base: Any, names: tuple[str, ...]) -> Any:
    """Return the class of modules of a class that have factors for parameters of these names."""
    fields: dict[str, Any] = {name: property(functools.partial(_sum, name)) for name in names}
    fields |= {"__module__": base.__module__, "__qualname__": base.__qualname__}
    fields |= {"_adapted": base, "__reduce_ex__": _reduced, "__doc__": base.__doc__}
    made: Any = type(base.__name__, (base,), fields)
    forward = _FORWARDS.get(base.forward)
    if names == ("weight",) and forward is not None:
        made.forward = functools.partialmethod(forward, base)
    elif issubclass(base, nn.RNNBase):
        made.forward = functools.partialmethod(_recurrent, base)
    return made


def _sum(name: str, module: Any) -> Any:
    return module.__dict__[_FIELD][name].added_to(module._parameters[name])


def _reduced(self: Any, protocol: Any) -> Any:
    """Name the class that an adapted module's own is derived from, for copies and pickles."""
    kind = type(self)
    return _blank, (kind._adapted, tuple(sorted(self.__dict__[_FIELD]))), self.__getstate__()


def _blank(base: Any, names: tuple[str, ...]) -> Any:
    kind = _derived(base, names)
    return kind.__new__(kind)


# ---------------------------------------------------------------- layers without the sum


def _held(module: Any) -> tuple[Any, Any, Any, float]:
    """Return the weight, the factors in its dtype, and their scale."""
    weight, factors = module._parameters["weight"], module.__dict__[_FIELD]["weight"]
    return weight, factors.a.to(weight.dtype), factors.b.to(weight.dtype), factors.scale


def _linear(self: Any, base: Any, input: Any) -> Any:
    weight, a, b, scale = _held(self)
    return F.linear(input, weight, self.bias) + input @ a @ b * scale


def _convolution(self: Any, base: Any, input: Any) -> Any:
    if self.groups != 1:
        return base.forward(self, input)
    weight, a, b, scale = _held(self)
    narrow = self._conv_forward(input, a.mT.reshape(-1, *weight.shape[1:]), None)
    wide = b.mT.reshape(*b.mT.shape, *[1] * self._dims)
    more = getattr(F, self._name)(narrow, wide)
    return self._conv_forward(input, weight, self.bias) + more * scale


def _embedding(self: Any, base: Any, input: Any) -> Any:
    if self.max_norm is not None:
        return base.forward(self, input)
    weight, a, b, scale = _held(self)
    rest = (self.padding_idx, None, self.norm_type, self.scale_grad_by_freq, self.sparse)
    more = F.embedding(input, a, *rest) @ b * scale
    if self.padding_idx is not None:  # its row has no gradient
        more = leafax.where((input == self.padding_idx).unsqueeze(-1), more.detach(), more)
    return F.embedding(input, weight, *rest) + more


def _recurrent(self: Any, base: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a recurrent layer, which holds its weights in a list, with the sums in it."""
    before = self._flat_weights
    names = self._flat_weights_names
    try:
        self.__dict__["_flat_weights"] = [getattr(self, name, None) for name in names]
        return base.forward(self, *args, **kwargs)
    finally:
        self.__dict__["_flat_weights"] = before


_FORWARDS: dict[Any, Callable[..., Any]] = {
    nn.Linear.forward: _linear,
    nn.Conv1d.forward: _convolution,  # that of all three
    nn.Embedding.forward: _embedding,
}
