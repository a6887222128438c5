"""PyTorch's `torch.nn.modules.rnn`: recurrent layers, and the cells that they repeat."""

from __future__ import annotations

from typing import Any

from ..._ops.creation.factories import zeros
from .._functional.recurrent import gru, lstm, rnn_relu, rnn_tanh
from ..utils.rnn import PackedSequence
from ._layers.rnn_base import RNNBase as RNNBase
from ._layers.rnn_base import _apply_permutation as _apply_permutation
from ._layers.rnn_base import apply_permutation as apply_permutation
from ._layers.rnn_cells import GRUCell as GRUCell
from ._layers.rnn_cells import LSTMCell as LSTMCell
from ._layers.rnn_cells import RNNCell as RNNCell
from ._layers.rnn_cells import RNNCellBase as RNNCellBase

__all__ = ["RNNBase", "RNN", "LSTM", "GRU", "RNNCellBase", "RNNCell", "LSTMCell", "GRUCell"]

_ONLY_LSTM = "proj_size argument is only supported for LSTM, not RNN or GRU"


class _OneState(RNNBase):
    """Carry a hidden state alone."""

    _said = ""  # the class's name, as its errors say it
    _end = " instead"

    def _first_state(self, input: Any, batch: int) -> Any:
        size = (self.num_layers * self._directions, batch, self.hidden_size)
        return zeros(size, dtype=input.dtype, device=input.device)

    def _batched_state(self, hx: Any, batched: bool) -> Any:
        if hx is None:
            return None
        if not batched:
            if hx.dim() != 2:
                raise RuntimeError(
                    f"For unbatched 2-D input, hx should also be 2-D but got {hx.dim()}-D tensor"
                )
            return hx.unsqueeze(1)
        if hx.dim() != 3:
            raise RuntimeError(
                f"For batched 3-D input, hx should also be 3-D but got {hx.dim()}-D tensor"
            )
        return hx

    def _layers(self, *args: Any) -> tuple[Any, Any]:
        raise NotImplementedError

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Run the layers over sequences `(T, N, in)`, `(N, T, in)` if `batch_first`, or `(T, in)`.

        Args:
          input: a tensor, or a `PackedSequence`.
          hx: `(num_layers * directions, N, hidden_size)`, zeros if None.

        Returns:
          The hidden states of the last layer at each step, and those of all after the last.
        """
        self._update_flat_weights()
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.dim() not in (2, 3):
            raise ValueError(
                f"{self._said}: Expected input to be 2D or 3D, got {input.dim()}D{self._end}"
            )
        batched, batch_dim = input.dim() == 3, 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(batch_dim)
        hx = self._batched_state(hx, batched)
        if hx is None:
            output, hidden = self._from_zeros(input)
        else:
            self.check_forward_args(input, hx, None)
            rest = (*self._rest, self.batch_first)
            output, hidden = self._layers(input, hx, self._flat_weights, *rest)
        if batched:
            return output, hidden
        return output.squeeze(batch_dim), hidden.squeeze(1)

    def _forward_packed(self, packed: PackedSequence, hx: Any) -> tuple[Any, Any]:
        data, batch_sizes, sorted_indices, unsorted_indices = packed
        if hx is None:
            hx = self._first_state(data, int(batch_sizes[0]))
        else:
            hx = self.permute_hidden(hx, sorted_indices)
        self.check_forward_args(data, hx, batch_sizes)
        output, hidden = self._layers(data, batch_sizes, hx, self._flat_weights, *self._rest)
        output = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
        return output, self.permute_hidden(hidden, unsorted_indices)


class RNN(_OneState):
    """Run layers of Elman cells, whose nonlinearity is "tanh" or "relu".

    Args:
      input_size, hidden_size, num_layers, nonlinearity, bias, batch_first, dropout,
      bidirectional, device, dtype: as in PyTorch, in this order.
    """

    _said, _end = "RNN", " tensor instead"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError(_ONLY_LSTM)
        if len(args) > 3:
            nonlinearity, args = args[3], args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = nonlinearity

    def _layers(self, *args: Any) -> tuple[Any, Any]:
        if self.mode not in ("RNN_TANH", "RNN_RELU"):
            raise AssertionError(f"mode must be RNN_TANH or RNN_RELU, got {self.mode}")
        return (rnn_tanh if self.mode == "RNN_TANH" else rnn_relu)(*args)  # type: ignore[return-value]


class GRU(_OneState):
    """Run layers of gated recurrent units.

    Args:
      input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device,
      dtype: as in PyTorch, in this order.
    """

    _said = "GRU"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError(_ONLY_LSTM)
        super().__init__("GRU", *args, **kwargs)

    def _layers(self, *args: Any) -> tuple[Any, Any]:
        return gru(*args)  # type: ignore[return-value]


class LSTM(RNNBase):
    """Run layers of long short-term memory cells.

    Args:
      input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size,
      device, dtype: as in PyTorch, in this order.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        """Return the shape that the cell state must have."""
        batch = self._batch_size(input, batch_sizes)
        return (self.num_layers * self._directions, batch, self.hidden_size)

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        """Raise unless input and states have the sizes of the layers."""
        self.check_input(input, batch_sizes)
        wanted = (
            self.get_expected_hidden_size(input, batch_sizes),
            self.get_expected_cell_size(input, batch_sizes),
        )
        for i, size in enumerate(wanted):
            said = f"Expected hidden[{i}] size {{}}, got {{}}"
            self.check_hidden_size(hidden[i], size, said)

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        """Order both states as sorted sequences are."""
        if permutation is None:
            return hx
        return tuple(_apply_permutation(x, permutation) for x in hx[:2])

    def _first_states(self, input: Any, batch: int) -> tuple[Any, Any]:
        count, made = self.num_layers * self._directions, {
            "dtype": input.dtype, "device": input.device,
        }  # fmt: skip
        h = zeros((count, batch, self.proj_size or self.hidden_size), **made)
        return h, zeros((count, batch, self.hidden_size), **made)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, tuple[Any, Any]]:
        """Run the layers over sequences `(T, N, in)`, `(N, T, in)` if `batch_first`, or `(T, in)`.

        Args:
          input: a tensor, or a `PackedSequence`.
          hx: hidden and cell state, `(num_layers * directions, N, hidden_size)` each (hidden
            states of `proj_size`, if it is not 0); zeros if None.

        Returns:
          The hidden states of the last layer at each step, and both states after the last.
        """
        self._update_flat_weights()
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.dim() not in (2, 3):
            raise ValueError(f"LSTM: Expected input to be 2D or 3D, got {input.dim()}D instead")
        batched, batch_dim = input.dim() == 3, 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(batch_dim)
        if hx is None:
            output, h, c = self._from_zeros(input)
        else:
            hx = _batched_states(hx, batched)
            self.check_forward_args(input, hx, None)
            output, h, c = lstm(input, hx, self._flat_weights, *self._rest, self.batch_first)
        if batched:
            return output, (h, c)
        return output.squeeze(batch_dim), (h.squeeze(1), c.squeeze(1))

    def _forward_packed(self, packed: PackedSequence, hx: Any) -> tuple[Any, tuple[Any, Any]]:
        data, batch_sizes, sorted_indices, unsorted_indices = packed
        if hx is None:
            hx = self._first_states(data, int(batch_sizes[0]))
        else:
            hx = self.permute_hidden(hx, sorted_indices)
        self.check_forward_args(data, hx, batch_sizes)
        output, *hidden = lstm(data, batch_sizes, hx, self._flat_weights, *self._rest)
        output = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
        return output, self.permute_hidden(tuple(hidden), unsorted_indices)


def _batched_states(hx: Any, batched: bool) -> tuple[Any, Any]:
    """Return both states with a dim for the batch."""
    wanted, said = (3, "batched 3-D") if batched else (2, "unbatched 2-D")
    if hx[0].dim() != wanted or hx[1].dim() != wanted:
        raise RuntimeError(
            f"For {said} input, hx and cx should also be {wanted}-D but got "
            f"({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
        )
    return hx if batched else (hx[0].unsqueeze(1), hx[1].unsqueeze(1))
