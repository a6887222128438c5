"""Arguments that PyTorch's `nn.functional` refuses or warns of, in its words."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

import leafax

THREE = (2, 1, 4)


def numbers(t: Any, *shape: int) -> Any:
    n = 1
    for k in shape:
        n *= k
    return ((t.arange(float(n)) * 7919 % 23 - 11) / 7).reshape(shape)


def scores(t: Any, *shape: int) -> Any:
    return numbers(t, *(shape or (5, 2, 4))).log_softmax(-1)


def labels(t: Any) -> Any:
    return t.tensor([[1, 2], [1, 1]])


def ctc(
    lengths: Any = (5, 5), sizes: Any = (2, 2), how: Callable[[Any], Any] = labels, **options: Any
) -> Callable[[Any], Any]:
    def call(t: Any) -> Any:
        made = [t.tensor(x) if isinstance(x, list) else x for x in (lengths, sizes)]
        return t.nn.functional.ctc_loss(scores(t), how(t), *made, **options)

    return call


def heads(query: Any = THREE, key: Any = THREE, value: Any = THREE, **masks: Any) -> Any:
    def call(t: Any) -> Any:
        x = [numbers(t, *s) for s in (query, key, value)]
        w = [numbers(t, 12, 4), numbers(t, 12), None, None, False, 0.0, numbers(t, 4, 4)]
        given = {name: t.zeros(shape) for name, shape in masks.items()}
        f = t.nn.functional.multi_head_attention_forward
        return f(*x, 4, 2, *w, numbers(t, 4), **given)[0]

    return call


def affine(theta: Any, size: Any, **options: Any) -> Callable[[Any], Any]:
    return lambda t: t.nn.functional.affine_grid(numbers(t, *theta), size, **options)


def sample(image: Any, grid: Any, **options: Any) -> Callable[[Any], Any]:
    f = "grid_sample"
    return lambda t: getattr(t.nn.functional, f)(numbers(t, *image), numbers(t, *grid), **options)


def unpool(dims: int, shape: Any, places: Any, *rest: Any, **options: Any) -> Any:
    def call(t: Any) -> Any:
        f = getattr(t.nn.functional, f"max_unpool{dims}d")
        return f(numbers(t, *shape), t.tensor(places), *rest, **options)

    return call


def resized(size: Any) -> Callable[[Any], Any]:
    return lambda t: t.nn.functional.interpolate(numbers(t, 1, 2, 4, 4), size(t))


SQUARE = [[[[0, 2], [8, 10]]]]
CASES: dict[str, Callable[[Any], Any]] = {
    "ctc: targets too long": ctc(sizes=(3, 2)),
    "ctc: targets too long, a tensor": ctc([5, 5], [3, 2]),
    "ctc: a negative length": ctc(sizes=(2, -2)),
    "ctc: a negative length, a tensor": ctc([5, 5], [2, -2]),
    "ctc: too many steps": ctc((6, 5)),
    "ctc: lengths of floats": ctc([5.0, 5.0], [2, 2]),
    "ctc: target lengths of floats": ctc([5, 5], [2.0, 2.0]),
    "ctc: a length that is a float": ctc((5, 5.0)),
    "ctc: a length missing": ctc((5,)),
    "ctc: a target length missing": ctc(sizes=(2,)),
    "ctc: joined targets too short": ctc(how=lambda t: t.tensor([1, 2, 1])),
    "ctc: joined targets too long": ctc([5, 5], [2, 2], lambda t: t.tensor([1, 2, 1, 1, 1])),
    "ctc: joined targets": ctc(how=lambda t: t.tensor([1, 2, 1, 1])),
    "ctc: targets of fewer": ctc(how=lambda t: labels(t)[:1]),
    "ctc: targets of three dims": ctc(how=lambda t: labels(t)[None]),
    "ctc: blank": ctc(blank=4),
    "ctc: halves": lambda t: t.nn.functional.ctc_loss(
        scores(t).half(), labels(t), (5, 5), (2, 2)
    ),
    "ctc: nothing": lambda t: t.nn.functional.ctc_loss(
        t.zeros(0, 2, 4), labels(t), (0, 0), (2, 2)
    ),
    "affine: by default": affine((1, 2, 3), (1, 1, 2, 2)),
    "affine: one pixel": affine((1, 2, 3), (1, 1, 1, 2), align_corners=True),
    "affine: no matrix of 2D": affine((1, 2, 2), (1, 1, 2, 2), align_corners=False),
    "affine: no matrix of 3D": affine((1, 2, 3), (1, 1, 2, 2, 2), align_corners=False),
    "affine: a vector": affine((1, 2, 3), (1, 1, 2), align_corners=False),
    "affine: empty": affine((1, 2, 3), (1, 1, 0, 2), align_corners=False),
    "affine: another batch": affine((2, 2, 3), (1, 1, 2, 2), align_corners=False),
    "affine: integers": lambda t: t.nn.functional.affine_grid(
        t.ones(1, 2, 3).long(), (1, 1, 2, 2), align_corners=False
    ),
    "grid: by default": sample((1, 1, 2, 2), (1, 3, 3, 2)),
    "grid: no such mode": sample((1, 1, 2, 2), (1, 3, 3, 2), mode="x"),
    "grid: no pixels": sample((1, 1, 0, 2), (1, 3, 3, 2), align_corners=True),
    "grid: no images": sample((0, 1, 2, 2), (0, 3, 3, 2), align_corners=True),
    "grid: no channels": sample((1, 0, 2, 2), (1, 3, 3, 2), align_corners=True),
    "heads: other keys than values": heads(key=(3, 1, 4)),
    "heads: a vector of queries": heads(query=(4,)),
    "heads: keys of two dims": heads(key=(2, 4)),
    "heads: a mask too large": heads(attn_mask=(3, 3)),
    "heads: a mask of three dims": heads(attn_mask=(3, 2, 2)),
    "heads: a mask of one dim": heads(attn_mask=(2,)),
    "heads: padding too long": heads(key_padding_mask=(1, 3)),
    "heads: padding of more": heads(key_padding_mask=(2, 2)),
    "heads: padding of one dim": heads(key_padding_mask=(2,)),
    "heads: unbatched": heads((2, 4), (2, 4), (2, 4), attn_mask=(3, 2, 2)),
    "unpool: out of range": unpool(2, (1, 1, 2, 2), [[[[0, 2], [8, 16]]]], 2),
    "unpool: a size": unpool(2, (1, 1, 2, 2), SQUARE, 2, output_size=(1, 1, 7, 4)),
    "unpool: of two dims": unpool(2, (2, 2), [[0, 2], [8, 10]], 2),
    "unpool: places of 32 bits": lambda t: t.nn.functional.max_unpool1d(
        numbers(t, 1, 1, 2), t.tensor([[[0, 2]]]).int(), 2
    ),
    "resize to floats": resized(lambda t: (2, 2.0)),
    "resize to a tensor": resized(lambda t: t.tensor(3)),
    "resize to tensors": resized(lambda t: [t.tensor(3), 2]),
    "slopes": lambda t: t.nn.functional.rrelu(numbers(t, 3), float("inf"), 1.0, training=True),
    "layers of a number": lambda t: t.nn.functional.layer_norm(numbers(t, 2, 3), 3),
    "drop all of a vector": lambda t: t.nn.functional.dropout2d(numbers(t, 3), 1.0),
    "drop parts of a vector": lambda t: t.nn.functional.dropout2d(numbers(t, 3), 0.5),
    "no channels to convolve": lambda t: t.nn.functional.conv1d(t.ones(1, 0, 4), t.ones(3, 0, 2)),
    "no channels, a bias": lambda t: t.nn.functional.conv2d(
        t.ones(1, 0, 4, 5), t.ones(3, 0, 2, 2), t.ones(3), stride=2, padding=1
    ),
    "fold integers": lambda t: t.nn.functional.fold(t.ones(1, 4, 9).long(), (4, 4), 2),
    "labels of floats": lambda t: t.nn.functional.multilabel_margin_loss(
        numbers(t, 3, 4), numbers(t, 3, 4)
    ),
    "bags, the other way round": lambda t: t.nn.functional.embedding_bag(
        numbers(t, 5, 3), t.tensor([0, 1]), t.tensor([0])
    ),
}  # fmt: skip


def outcome(call: Callable[[Any], Any], lib: Any) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            x = call(lib)
            told: Any = (tuple(x.shape), [round(v, 3) + 0.0 for v in x.reshape(-1).tolist()])
        except Exception as error:
            told = (type(error).__name__, str(error).replace("leafax", "torch"))
    return told, [str(w.message).partition(" (Triggered internally")[0] for w in caught]


CASES |= {
    f"pad {args}": lambda t, args=args: t.nn.functional.pad(numbers(t, 1, 2, 5), *args)
    for args in (
        ((1.5, 1),), (1,), ((True, 1),), (None,), ((1, 1), 3), ((1, 1), "constant", 1j),
        ((1, 1), "constant", "a"), ([1, -1], "circular"), ((1, 1), "constant", True), ((1,),),
    )
}  # fmt: skip


CASES |= {
    f"{where} same {kernel} {step}": lambda t, where=where, kernel=kernel, step=step: (
        (t if where == "torch" else t.nn.functional).conv2d(
            numbers(t, 1, 2, 6, 6), numbers(t, 2, 2, *kernel), padding="same", dilation=step
        )
    )
    for where in ("torch", "functional")
    for kernel, step in (((2, 2), 1), ((3, 3), 1), ((4, 3), (1, 2)), ((4, 3), 2), ((3, 2), (1,)))
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_as_in_torch(case: str) -> None:
    assert outcome(CASES[case], leafax) == outcome(CASES[case], torch)
