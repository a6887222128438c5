"""The switches of float32 precision, of two generations: what each then says, as in PyTorch."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import leafax
from leafax.backends import _float32_precision
from leafax.functional.program.numerics import numerics

_PLACES: dict[str, Any] = {
    "generic": lambda b: b, "cudnn": lambda b: b.cudnn, "matmul": lambda b: b.cuda.matmul,
    "conv": lambda b: b.cudnn.conv, "rnn": lambda b: b.cudnn.rnn, "mkldnn": lambda b: b.mkldnn,
    "mkldnn matmul": lambda b: b.mkldnn.matmul, "mkldnn conv": lambda b: b.mkldnn.conv,
    "mkldnn rnn": lambda b: b.mkldnn.rnn,
}  # fmt: skip
_RESET = [
    ("generic", "none"), ("cudnn", "none"), ("mkldnn conv", "none"), ("mkldnn rnn", "none"),
    ("set", "highest"), ("allow", "cudnn", True),
]  # fmt: skip


def tell(t: Any, step: Any) -> str | None:
    """Make one setting; return the error that it raised."""
    kind, *value = step
    try:
        if kind == "set":
            t.set_float32_matmul_precision(*value)
        elif kind == "allow":
            where, allowed = value
            module = t.backends.cudnn if where == "cudnn" else t.backends.cuda.matmul
            module.allow_tf32 = allowed
        elif kind == "halves":
            name, told = value
            setattr(t.backends.cuda.matmul, name, told)
        else:
            _PLACES[kind](t.backends).fp32_precision = value[0]
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def state(t: Any) -> dict[str, str]:
    """Return what all switches say, or the error with which they refuse."""
    reads: dict[str, Any] = {name: lambda p=place: p(t.backends).fp32_precision
                             for name, place in _PLACES.items()}  # fmt: skip
    matmul = t.backends.cuda.matmul
    reads |= {
        "get": t.get_float32_matmul_precision, "tf32": lambda: matmul.allow_tf32,
        "cudnn tf32": lambda: t.backends.cudnn.allow_tf32,
        "bf16": lambda: matmul.allow_bf16_reduced_precision_reduction,
        "split": lambda: matmul.allow_bf16_reduced_precision_reduction_split_k,
        "sums": lambda: matmul.allow_fp16_accumulation, "unknown": lambda: matmul.tf32,
        "of conv": lambda: t.backends.cudnn.conv.tf32,
    }  # fmt: skip
    found = {}
    for name, read in reads.items():
        try:
            found[name] = str(read())
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found


@pytest.fixture(autouse=True)
def as_they_were(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # PyTorch's own tests, whose database others import, forbid plain assignments.
    monkeypatch.setattr(torch.backends.m, "__allow_nonbracketed_mutation_flag", True)
    _float32_precision.forget()
    yield
    for step in _RESET:
        tell(torch, step)
    _float32_precision.forget()


@pytest.mark.parametrize(
    "steps",
    [
        [], [("set", "high")], [("set", "medium")], [("set", "high"), ("set", "highest")],
        [("allow", "matmul", True)], [("allow", "matmul", True), ("allow", "matmul", False)],
        [("allow", "cudnn", False)], [("allow", "cudnn", False), ("generic", "ieee")],
        [("allow", "cudnn", False), ("cudnn", "tf32")], [("matmul", "tf32")],
        [("matmul", "tf32"), ("generic", "ieee")], [("matmul", "tf32"), ("set", "highest")],
        [("matmul", "ieee")], [("matmul", "bf16")], [("matmul", "bad")], [("matmul", 1)],
        [("set", "high"), ("matmul", "ieee")], [("set", "high"), ("generic", "ieee")],
        [("conv", "ieee")], [("conv", "ieee"), ("rnn", "ieee")], [("conv", "none")],
        [("conv", "none"), ("generic", "ieee")], [("conv", "ieee"), ("generic", "tf32")],
        [("generic", "bf16")], [("generic", "bad")], [("mkldnn", "bf16")],
        [("mkldnn matmul", "bf16"), ("set", "medium")], [("mkldnn matmul", "tf32")],
        [("cudnn", "ieee"), ("conv", "tf32"), ("cudnn", "none")],
        [("allow", "matmul", 1)], [("allow", "cudnn", 1)],
        [("halves", "allow_bf16_reduced_precision_reduction", (False, True))],
        [("halves", "allow_bf16_reduced_precision_reduction", 1)],
        [("halves", "allow_bf16_reduced_precision_reduction", ())],
        [("halves", "allow_bf16_reduced_precision_reduction", (True, 1))],
        [("halves", "allow_fp16_accumulation", 1)], [("halves", "allow", 1)],
        [("halves", "allow_bf16_reduced_precision_reduction", True)],
    ],
    ids=str,
)  # fmt: skip
def test_switches_say_what_pytorchs_say(steps: list[Any]) -> None:
    both = []
    for t in (torch, leafax):
        for step in _RESET:
            assert tell(t, step) is None
        both.append([[tell(t, step) for step in steps], state(t)])
    assert both[1] == both[0]


def test_precision_of_all_covers_convolutions_until_they_are_told() -> None:
    leafax.backends.fp32_precision = "ieee"
    assert leafax.backends.cudnn.conv.fp32_precision == "ieee"
    leafax.backends.fp32_precision = "none"
    assert leafax.backends.cudnn.conv.fp32_precision == "tf32"


def test_flags_hold_for_a_block() -> None:
    with leafax.backends.cudnn.flags(enabled=True, allow_tf32=False):
        assert not leafax.backends.cudnn.allow_tf32 and numerics().conv == "highest"
    assert leafax.backends.cudnn.allow_tf32 and numerics().conv == "high"
    with leafax.backends.flags(fp32_precision="ieee"):
        assert leafax.backends.mkldnn.rnn.fp32_precision == "ieee"
    with leafax.backends.mkldnn.flags(enabled=False, fp32_precision="bf16"):
        assert leafax.backends.mkldnn.conv.fp32_precision == "bf16"
    assert leafax.backends.mkldnn.conv.fp32_precision == "none" and numerics().conv == "high"


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], ("highest", "high", "high", None)),
        ([("set", "highest")], ("highest", "high", "high", "highest")),
        ([("set", "high")], ("high", "high", "high", "high")),
        ([("set", "medium")], ("default", "high", "high", "default")),
        ([("set", "high"), ("allow", "cudnn", False)], ("high", "highest", "highest", "highest")),
        ([("conv", "ieee")], ("highest", "highest", "high", "highest")),
        ([("generic", "bf16")], ("default", "default", "default", "default")),
    ],
    ids=str,
)
def test_switches_choose_jaxs_precisions(steps: list[Any], expected: Any) -> None:
    for step in steps:
        assert tell(leafax, step) is None
    assert numerics()[1:] == expected
