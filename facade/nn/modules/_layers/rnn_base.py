"""State shared by recurrent layers: their weights, by layer and direction."""

from __future__ import annotations

import math
import numbers
import warnings
import weakref
from collections.abc import Callable
from typing import Any, Self

from ...._core.handle import Handle
from ...._core.trie import local
from ...._ops.creation.factories import empty
from ..._functional.recurrent import padded_layers
from ...init import uniform_
from ...parameter import Parameter
from ..module import Module

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _apply_permutation(tensor: Any, permutation: Any, dim: int = 1) -> Any:
    return tensor.index_select(dim, permutation)


def apply_permutation(tensor: Any, permutation: Any, dim: int = 1) -> Any:
    """Take `tensor.index_select(dim, permutation)`, by its deprecated name."""
    warnings.warn(
        "`apply_permutation` is deprecated, please use `tensor.index_select(dim, permutation)` "
        "instead",
        FutureWarning,
        stacklevel=2,
    )
    return _apply_permutation(tensor, permutation, dim)


class RNNBase(Module):
    """Hold the weights of recurrent layers, under PyTorch's names.

    Args:
      mode: "LSTM", "GRU", "RNN_TANH" or "RNN_RELU".
      input_size, hidden_size: widths of inputs and states.
      num_layers: how many layers, each taking the last one's outputs.
      bias: with two biases a layer, as PyTorch has them.
      batch_first: sequences are `(N, T, in)`.
      dropout: probability, between layers in training.
      bidirectional: layers run from both ends.
      proj_size: width of an LSTM's hidden states, 0 for `hidden_size`.
    """

    __constants__ = [
        "mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout",
        "bidirectional", "proj_size",
    ]  # fmt: skip

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1,
        bias: bool = True, batch_first: bool = False, dropout: float = 0.0,
        bidirectional: bool = False, proj_size: int = 0, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._flat_weight_refs: list[Any] = []
        _check_numbers(dropout, num_layers, bias, batch_first)
        _check_sizes(input_size, hidden_size, num_layers, proj_size)
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        rows = _GATES[mode] * hidden_size
        self._flat_weights_names: list[str] = []
        self._all_weights: list[list[str]] = []
        out = proj_size or hidden_size
        for layer in range(num_layers):
            columns = out * self._directions if layer else input_size
            shapes: list[tuple[int, ...]] = [(rows, columns), (rows, out), (rows,), (rows,)]
            shapes = shapes if bias else shapes[:2]
            shapes = [*shapes, (proj_size, hidden_size)] if proj_size else shapes
            for direction in range(self._directions):
                names = self._names_of(layer, direction)
                for name, shape in zip(names, shapes, strict=True):
                    setattr(self, name, Parameter(empty(shape, device=device, dtype=dtype)))
                self._flat_weights_names.extend(names)
                self._all_weights.append(names)
        self._init_flat_weights()
        self.reset_parameters()

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    @property
    def _rest(self) -> tuple[Any, ...]:
        """Return the arguments that the functions take after the weights."""
        return self.bias, self.num_layers, self.dropout, self.training, self.bidirectional

    def _names_of(self, layer: int, direction: int) -> list[str]:
        kinds = ["weight_ih", "weight_hh"] + ["bias_ih", "bias_hh"] * self.bias
        kinds += ["weight_hr"] * bool(self.proj_size)
        return [f"{kind}_l{layer}{'_reverse' * direction}" for kind in kinds]

    def _init_flat_weights(self) -> None:
        self._flat_weights = [getattr(self, name, None) for name in self._flat_weights_names]
        self._note_weights()

    def _note_weights(self) -> None:
        self._flat_weight_refs = [None if w is None else weakref.ref(w) for w in self._flat_weights]

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__.get("_flat_weights_names", ()):
            index = self._flat_weights_names.index(name)
            if index < len(self.__dict__.get("_flat_weights", ())):
                self._flat_weights[index] = value
        super().__setattr__(name, value)

    def flatten_parameters(self) -> None:
        """Do nothing: it is for cuDNN, which XLA calls by itself where it does."""

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Self:
        self._flat_weight_refs = []
        changed = super()._apply(fn, recurse)
        self._init_flat_weights()
        return changed

    def reset_parameters(self) -> None:
        """Draw all weights and biases uniformly, within `1 / sqrt(hidden_size)` of 0."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            uniform_(weight, -bound, bound)

    def check_input(self, input: Any, batch_sizes: Any) -> None:
        """Raise unless the input has the layers' dtype and width."""
        first = self._flat_weights[0]
        if first is not None and input.dtype != first.dtype and local.mode.autocast is None:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({first.dtype}). "
                f"Convert input: input.to({first.dtype}), or convert model: "
                f"model.to({input.dtype})"
            )
        wanted = 2 if batch_sizes is not None else 3
        if input.dim() != wanted:
            raise RuntimeError(f"input must have {wanted} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. Expected "
                f"{self.input_size}, got {input.size(-1)}"
            )

    def _batch_size(self, input: Any, batch_sizes: Any) -> int:
        if batch_sizes is not None:
            return int(batch_sizes[0])
        return int(input.size(0) if self.batch_first else input.size(1))

    def get_expected_hidden_size(self, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        """Return the shape that the hidden state must have."""
        width = self.proj_size if self.proj_size > 0 else self.hidden_size
        return (self.num_layers * self._directions, self._batch_size(input, batch_sizes), width)

    def check_hidden_size(
        self, hx: Any, expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:  # fmt: skip
        """Raise unless a state has this shape."""
        if tuple(hx.size()) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        """Raise unless input and state have the sizes of the layers."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def _from_zeros(self, input: Any) -> tuple[Any, ...]:
        """Run the layers from states of zeros."""
        self.check_input(input, None)
        rest = (*self._rest, self.batch_first, self.proj_size > 0)
        return padded_layers(self.mode.lower(), input, [], self._flat_weights, *rest)

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        """Order a state as sorted sequences are."""
        return hx if permutation is None else _apply_permutation(hx, permutation)

    def extra_repr(self) -> str:
        """Say what the layer was made with."""
        said = [f"{self.input_size}, {self.hidden_size}"]
        usual = {
            "proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0,
            "bidirectional": False,
        }  # fmt: skip
        found = {name: getattr(self, name) for name in usual}
        return ", ".join(said + [f"{k}={v}" for k, v in found.items() if v != usual[k]])

    def _weights_have_changed(self) -> bool:
        """Tell whether an attribute is another tensor than was noted, as in `functional_call`."""
        for ref, name in zip(self._flat_weight_refs, self._flat_weights_names, strict=False):
            weight = getattr(self, name, None)
            if weight is not None and ref is not None and ref() is not weight:
                return True
        return False

    def _update_flat_weights(self) -> None:
        if self._weights_have_changed():
            self._init_flat_weights()

    def __getstate__(self) -> dict[str, Any]:
        self._update_flat_weights()
        state = dict(self.__dict__)
        del state["_flat_weight_refs"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "all_weights" in state:
            self._all_weights = state["all_weights"]
        if "proj_size" not in state:
            self.proj_size = 0
        if not isinstance(self._all_weights[0][0], str):  # files of PyTorch before 1.0
            layers, both = range(self.num_layers), range(self._directions)
            self._all_weights = [self._names_of(i, k) for i in layers for k in both]
            self._flat_weights_names = [x for names in self._all_weights for x in names]
            self._init_flat_weights()
        self._note_weights()

    @property
    def all_weights(self) -> list[list[Handle]]:
        """Return the weights and biases, a list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]


def _check_numbers(dropout: Any, num_layers: int, bias: Any, batch_first: Any) -> None:
    """Raise PyTorch's errors for what is no number or no bool, and warn of what does nothing."""
    number = isinstance(dropout, numbers.Number) and not isinstance(dropout, bool)
    if not number or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an "
            "element being zeroed"
        )
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout "
            f"expects num_layers greater than 1, but got dropout={dropout} and "
            f"num_layers={num_layers}",
            stacklevel=3,
        )
    for name, flag in (("bias", bias), ("batch_first", batch_first)):
        if not isinstance(flag, bool):
            raise TypeError(f"{name} should be of type bool, got: {type(flag).__name__}")


def _check_sizes(input_size: Any, hidden_size: Any, num_layers: int, proj_size: int) -> None:
    """Raise PyTorch's errors for layers of no size."""
    for name, size in (("input_size", input_size), ("hidden_size", hidden_size)):
        if not isinstance(size, int):
            raise TypeError(f"{name} should be of type int, got: {type(size).__name__}")
        if size <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if num_layers <= 0:
        raise ValueError("num_layers must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")
