"""`nn.utils.rnn`: packing and padding, beside live PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import leafax

LENGTHS = [2, 4, 1, 3]


def sequences(t: Any, sort: bool) -> list[Any]:
    rng = np.random.default_rng(0)
    lengths = sorted(LENGTHS, reverse=True) if sort else LENGTHS
    return [t.tensor(rng.normal(size=(n, 2)), requires_grad=True) for n in lengths]


def facts(x: Any) -> Any:
    """Values, shapes and dtypes, for whichever library."""
    if isinstance(x, (tuple, list)):
        return [facts(y) for y in x]
    if x is None or isinstance(x, (str, int, float, bool)):
        return x
    return str(x.dtype), tuple(x.shape), x.detach().tolist()


@pytest.mark.parametrize("sort", [True, False])
@pytest.mark.parametrize("first", [True, False])
def test_packed_and_unpacked(sort: bool, first: bool) -> None:
    def program(t: Any) -> Any:
        rnn = t.nn.utils.rnn
        parts = sequences(t, sort)
        packed = rnn.pack_sequence(parts, enforce_sorted=sort)
        padded, lengths = rnn.pad_packed_sequence(packed, first, -1.0, total_length=5)
        (padded**3).sum().backward()
        again = rnn.pack_padded_sequence(padded, lengths, first, enforce_sorted=sort)
        unpacked = rnn.unpack_sequence(again)
        assert type(again.double()) is rnn.PackedSequence
        assert again.to(t.float64) is again
        return facts([packed, padded, lengths, again, unpacked, [p.grad for p in parts]])

    assert program(leafax) == program(torch)


def test_a_permutation_is_inverted() -> None:
    rnn = leafax.nn.utils.rnn
    assert rnn.invert_permutation(leafax.tensor([2, 0, 1])).tolist() == [1, 2, 0]
    assert rnn.invert_permutation(None) is None


def test_fields_and_conversions() -> None:
    def program(t: Any) -> Any:
        packed = t.nn.utils.rnn.pack_sequence(sequences(t, False), enforce_sorted=False)
        data, sizes, order, back = packed
        assert packed.data is data and packed[1] is sizes
        other = type(packed)((data, sizes))
        half = packed.half()
        made = [half.float(), packed.int(), type(packed)(data, sizes, order), packed.cpu()]
        return facts([order, back, other, half, *made]), packed.is_cuda, packed._fields

    assert program(leafax) == program(torch)


ERRORS = (
    "rnn.pack_padded_sequence(x, [1, 2, 3, 4])", "rnn.pack_padded_sequence(x, [4, 3])",
    "rnn.pack_padded_sequence(x, [4, 3, 2, 0])",
    "rnn.pack_padded_sequence(x, t.tensor([4, 3, -2, -3]))",
    "rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, [4, 3, 2, 1]), total_length=3)",
    "rnn.PackedSequence(x)", "rnn.pack_sequence([])",
)  # fmt: skip


@pytest.mark.parametrize("call", ERRORS)
def test_errors_are_pytorchs(call: str) -> None:
    def said(t: Any) -> tuple[str, str]:
        scope = {"t": t, "rnn": t.nn.utils.rnn, "x": t.zeros(4, 4, 2)}
        with pytest.raises(Exception) as caught:
            eval(call, scope)
        return type(caught.value).__name__, str(caught.value)

    assert said(leafax) == said(torch)
