"""The cells of recurrent layers, one step at a time."""

from __future__ import annotations

import math
from typing import Any

from ...._ops.creation.factories import empty, zeros
from ..._functional.recurrent import gru_cell, lstm_cell, rnn_relu_cell, rnn_tanh_cell
from ...init import uniform_
from ...parameter import Parameter
from ..module import Module


class RNNCellBase(Module):
    """Hold the weights of a cell, `num_chunks` gates in one matrix."""

    __constants__ = ["input_size", "hidden_size", "bias"]

    bias_ih: Any
    bias_hh: Any

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        made = {"device": device, "dtype": dtype}
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(empty((rows, input_size), **made))
        self.weight_hh = Parameter(empty((rows, hidden_size), **made))
        for name in ("bias_ih", "bias_hh"):
            if bias:
                setattr(self, name, Parameter(empty(rows, **made)))
            else:
                self.register_parameter(name, None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weights and biases uniformly, within `1 / sqrt(hidden_size)` of 0."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        """Say what the layer was made with."""
        said = f"{self.input_size}, {self.hidden_size}"
        if self.__dict__.get("bias", True) is not True:
            said += f", bias={self.bias}"
        if self.__dict__.get("nonlinearity", "tanh") != "tanh":
            said += f", nonlinearity={self.nonlinearity}"
        return said

    def _weights(self) -> tuple[Any, ...]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _need_rank(self, said: str, x: Any) -> None:
        if x.dim() not in (1, 2):
            name = type(self)._said
            raise ValueError(f"{name}: Expected {said} to be 1D or 2D, got {x.dim()}D instead")

    _said = "RNNCell"  # the class's name, as its errors say it

    def _zeros(self, input: Any) -> Any:
        size = (input.size(0), self.hidden_size)
        return zeros(size, dtype=input.dtype, device=input.device)


class _OneStateCell(RNNCellBase):
    """Take and return a hidden state alone."""

    def _step(self, input: Any, hx: Any) -> Any:
        raise NotImplementedError

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Take one step: the next hidden state, of `(N, in)` or `(in,)`; from zeros if None."""
        self._need_rank("input", input)
        if hx is not None:
            self._need_rank("hidden", hx)
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            hx = self._zeros(input)
        elif not batched:
            hx = hx.unsqueeze(0)
        out = self._step(input, hx)
        return out if batched else out.squeeze(0)


class RNNCell(_OneStateCell):
    """Take one step of an Elman network, by "tanh" or "relu"."""

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh",
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, num_chunks=1, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def _step(self, input: Any, hx: Any) -> Any:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        cell = rnn_tanh_cell if self.nonlinearity == "tanh" else rnn_relu_cell
        return cell(input, hx, *self._weights())


class GRUCell(_OneStateCell):
    """Take one step of gated recurrent units."""

    _said = "GRUCell"

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, num_chunks=3, device=device, dtype=dtype)

    def _step(self, input: Any, hx: Any) -> Any:
        return gru_cell(input, hx, *self._weights())


class LSTMCell(RNNCellBase):
    """Take one step of long short-term memory cells."""

    _said = "LSTMCell"

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, num_chunks=4, device=device, dtype=dtype)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Take one step: the next hidden and cell state, of `(N, in)` or `(in,)`."""
        self._need_rank("input", input)
        for i, x in enumerate(hx or ()):
            self._need_rank(f"hx[{i}]", x)
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            start = self._zeros(input)
            hx = (start, start)
        elif not batched:
            hx = (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        h, c = lstm_cell(input, hx, *self._weights())
        return (h, c) if batched else (h.squeeze(0), c.squeeze(0))
