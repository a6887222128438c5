"""Cases from training scripts: layouts that follow others, warnings that PyTorch gives."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from helpers.sameness import same

import leafax


def _heads(lib: Any, kind: str) -> Any:
    x = lib.from_numpy(np.random.default_rng(0).normal(size=(2, 4, 30))).requires_grad_()
    q, k, v = (t.view(2, 4, 2, 5).transpose(1, 2) for t in (x * 1).chunk(3, -1))
    mask = lib.ones(4, 4, dtype=lib.float64).tril()
    takes: dict[str, Any] = {
        "causal": lambda f: f(q, k, v, is_causal=True),
        "mask": lambda f: f(q, k, v, mask),
        "mask that learns": lambda f: f(q, k, v, mask.requires_grad_()),
        "columns": lambda f: f(q, k.mT.contiguous().mT, v),
        "other order": lambda f: f(*[t.permute(0, 2, 1, 3) for t in (q, k, v)]),
        "wide values": lambda f: f(q, k, lib.cat([v, v], -1)),
        "one head of keys": lambda f: f(q, k[:, :1], v[:, :1]),
        "groups": lambda f: f(q, k[:, :1], v[:, :1], enable_gqa=True),
        "three dims": lambda f: f(q[0], k[0], v[0]),
    }
    return x, takes[kind](lib.nn.functional.scaled_dot_product_attention)


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    "kind",
    ["causal", "mask", "mask that learns", "columns", "other order", "wide values",
     "one head of keys", "groups", "three dims"],
)  # fmt: skip
def test_attention_lies_as_its_queries_do(kind: str) -> None:
    def program(lib: Any, see: Any) -> None:
        x, out = _heads(lib, kind)
        back = out.transpose(-3, -2)
        see(out.detach(), out.stride(), back.contiguous() is back, back.is_contiguous())
        back.reshape(-1).square().sum().backward()
        see.gradients(x.grad)

    same(program)


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    "make",
    [
        lambda o, p: o.Adam(p, amsgrad=True), lambda o, p: o.AdamW(p, lr=0.1),
        lambda o, p: o.SGD(p, lr=0.1, momentum=0.9),
        lambda o, p: o.SGD(p, lr=0.1, momentum=0.9, dampening=0.1),
        lambda o, p: o.RMSprop(p, momentum=0.9, centered=True), lambda o, p: o.Adagrad(p),
        lambda o, p: o.ASGD(p, t0=1), lambda o, p: o.Rprop(p),
    ],
)  # fmt: skip
def test_an_optimizers_state_lies_as_its_parameter_does(make: Any) -> None:
    def program(lib: Any, see: Any) -> None:
        numbers = np.random.default_rng(0).normal(size=(3, 4, 5))
        w = lib.from_numpy(numbers).permute(2, 0, 1).detach().requires_grad_()
        plain = lib.ones(3, dtype=lib.float64, requires_grad=True)
        optimizer = make(lib.optim, [w, plain])
        for _ in range(4):
            optimizer.zero_grad()
            ((w * w).sum() + (plain * plain).sum()).backward()
            optimizer.step()
            for p in (w, plain):
                state = optimizer.state[p]
                see([(name, state[name].stride(), state[name].detach() * 1) for name in state])
        see(w, w.stride())

    same(program)


_WARN: dict[str, Any] = {
    "boundaries": lambda lib, x: lib.searchsorted(x.t(), lib.ones(4, 1)),
    "values": lambda lib, x: lib.searchsorted(input=x.t(), sorted_sequence=lib.arange(3.0)),
    "buckets": lambda lib, x: lib.bucketize(x.t(), lib.arange(6.0)[::2]),
    "buckets by name": lambda lib, x: lib.bucketize(x, boundaries=lib.arange(6.0)[::2]),
    "sorter": lambda lib, x: lib.searchsorted(
        x[:2, :2], x[:2, :2].contiguous(), sorter=lib.zeros(2, 2, dtype=lib.long).t()
    ),
    "rows": lambda lib, x: lib.searchsorted(x, x),
    "negated": lambda lib, x: lib.bucketize(lib.complex(x, x).conj().imag, lib.arange(6.0)),
    "stft": lambda lib, x: lib.stft(lib.ones(20), 4, return_complex=True),
    "stft of a tensor": lambda lib, x: lib.ones(20).stft(4, return_complex=True),
    "stft with a window": lambda lib, x: lib.stft(
        lib.ones(20), 4, window=lib.ones(4), return_complex=True
    ),
    "stft that fails": lambda lib, x: lib.stft(lib.ones(20), 4),
    "stft that is no call": lambda lib, x: lib.stft(lib.ones(20), "a"),
    "istft": lambda lib, x: lib.istft(lib.ones(3, 21, dtype=lib.cfloat), 4),
    "norm of another dtype": lambda lib, x: lib.nn.functional.rms_norm(
        x, (4,), lib.ones(4, dtype=lib.bfloat16)
    ),
    "number of several": lambda lib, x: float(x.requires_grad_()),
}


@pytest.mark.parametrize("kind", _WARN)
def test_warnings_of_copies_and_windows(kind: str) -> None:
    def told(lib: Any) -> Any:
        lib.set_warn_always(True)
        try:
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                try:
                    _WARN[kind](lib, lib.arange(12.0).view(3, 4))
                except (RuntimeError, TypeError, ValueError) as error:
                    raised = type(error)
                else:
                    raised = None
        finally:
            lib.set_warn_always(False)
        return raised, [str(w.message).split(" (Triggered")[0] for w in found]

    assert told(leafax) == told(torch)


_CALLS = """
import warnings
import {lib} as torch
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    a = torch.eye(2)
    a.add_(2, a)
    torch.addmm(1, a, a, a)
    a.clone().addcdiv_(-2, a, a + 1)
    torch.range(0, 2)
    torch.add(torch.ones(2), 1, out=torch.ones(3))
    torch.ones(2, dtype=torch.cfloat).float()
for w in found:
    print(w.filename, w.lineno, str(w.message).split(" (Triggered")[0])
"""


@pytest.mark.exhaustive
def test_warnings_name_the_users_line_and_older_forms_warn_once() -> None:
    said = [
        subprocess.run(
            [sys.executable, "-c", _CALLS.format(lib=lib)],
            capture_output=True, text=True, check=True,
        ).stdout
        for lib in ("leafax", "torch")
    ]  # fmt: skip
    assert said[0] == said[1]


@pytest.mark.parametrize("look", ["print", "slice", "alive", "detached", "flat", "state", "none"])
def test_running_statistics_that_were_looked_at_through_a_view(look: str) -> None:
    """Their update counts no version, whoever shares them: graphs that saved them go on."""

    def program(lib: Any, see: Any) -> None:
        numbers = np.random.default_rng(1)
        f = lib.nn.functional
        mean, var, other, another = (lib.from_numpy(numbers.random(6)) for _ in range(4))
        weight = lib.ones(6, dtype=lib.float64, requires_grad=True)
        x = lib.from_numpy(numbers.normal(size=(8, 6)))
        kept = {
            "alive": lambda: (mean[:2], var.view(2, 3)), "detached": lambda: mean.detach(),
            "flat": lambda: var.view(-1),
        }.get(look, lambda: None)()  # fmt: skip
        outs = []
        for _ in range(4):
            out = f.batch_norm(x, mean, var, weight, None, True, 0.1)
            image = f.instance_norm(x.view(4, 6, 2)[:, :, :2].exp(), other, another, weight)
            outs.append(image)
            (out.pow(3).sum() + image.pow(3).sum()).backward()
            if look == "print":
                see(str(mean[:2]), repr(var[1:3]))
            if look == "slice":
                see(mean[1:3] * 1, var[0].item())
            if look == "state":
                see({k: v.clone() for k, v in {"mean": mean, "var": var}.items()}["var"])
            see(mean._version, var._version, mean * 1, var * 1)
            see(other._version, other[:2] * 1, another * 1)
        see(kept, mean, var)
        see.gradients(weight.grad)
        mean.add_(1)
        see(kept, mean._version)
        see.attempt(lambda: outs[-1].detach())

    same(program)


def test_instance_norm_writes_to_its_statistics() -> None:
    """A graph that saved them before raises, as after any other write."""

    def program(lib: Any, see: Any) -> None:
        mean, var = lib.zeros(3), lib.ones(3)
        x = lib.arange(24.0).view(2, 3, 4).square().requires_grad_()
        w = lib.ones(3, requires_grad=True)
        y = (w * mean).sum()
        lib.nn.functional.instance_norm(x, mean, var).sum().backward()
        see(mean, var, mean._version)
        see.attempt(y.backward)

    same(program)


@pytest.mark.parametrize("own", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["int64", "bool", "uint8"])
def test_dtypes_of_targets_and_weights_of_cross_entropies(kind: str, own: str) -> None:
    def program(lib: Any, see: Any) -> None:
        f, dtype = lib.nn.functional, getattr(lib, own)
        x = lib.tensor([0.2, 0.7, 0.5], dtype=dtype, requires_grad=True)
        y = lib.tensor([0.0, 1.0, 1.0], dtype=dtype)
        other = lib.tensor([1, 1, 0]).to(getattr(lib, kind))
        for reduction in ("mean", "none"):
            weighted = f.binary_cross_entropy(x, y, weight=other, reduction=reduction)
            weighted.sum().backward()
            see(weighted.detach())
            see.gradients(x.grad)
        logits = f.binary_cross_entropy_with_logits
        see.attempt(lambda: f.binary_cross_entropy(x, other).detach())
        see.attempt(lambda: logits(x, other).detach())
        see.attempt(lambda: logits(other, y).detach())
        see.attempt(lambda: logits(x, y, other).detach())
        see.attempt(lambda: logits(x, y, pos_weight=other).detach())

    same(program)


def test_edges_of_losses_lead_to_what_may_have_gradients() -> None:
    """Weights, lengths and labels have none."""

    def program(lib: Any, see: Any) -> None:
        f = lib.nn.functional
        x = lib.full((2, 3), 0.4, requires_grad=True)
        y, w = lib.full((2, 3), 0.2), lib.ones(3)
        moving = y.clone().requires_grad_()
        for loss in (
            f.binary_cross_entropy(x, y), f.binary_cross_entropy(x, moving, w),
            f.binary_cross_entropy_with_logits(x, y, w),
            f.binary_cross_entropy_with_logits(x, moving, pos_weight=w),
            f.binary_cross_entropy_with_logits(y, moving, w, pos_weight=w),
            f.multilabel_margin_loss(x, lib.tensor([[0, -1, 1], [0, 1, 2]])),
        ):  # fmt: skip
            see([None if fn is None else fn.name() for fn, _ in loss.grad_fn.next_functions])
            loss.backward()
            see.gradients(x.grad, moving.grad)
        log_probs = lib.full((5, 2, 4), -1.4, requires_grad=True)
        labels, lengths = lib.tensor([[1, 2], [1, 3]]), lib.tensor([5, 5])
        loss = f.ctc_loss(log_probs, labels, lengths, lib.tensor([2, 2]), reduction="none")
        see([fn.name() for fn, _ in loss.grad_fn.next_functions])
        loss.sum().backward()
        see.gradients(log_probs.grad)

    same(program)


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_rms_norm_lies_in_rows(weighted: bool, grad: bool) -> None:
    def program(lib: Any, see: Any) -> None:
        x = lib.arange(120.0).view(2, 3, 4, 5).requires_grad_()
        for y in (
            x, x.transpose(1, 2), x[:1].expand(2, 3, 4, 5), x[..., ::2], x.mT.bfloat16(),
            x.contiguous(memory_format=lib.channels_last),
        ):  # fmt: skip
            weight = lib.ones(y.shape[-1], dtype=y.dtype) if weighted else None
            with lib.set_grad_enabled(grad):
                out = lib.nn.functional.rms_norm(y, y.shape[-1:], weight)
            see(out.float(), out.grad_fn, out.stride())

    same(program)


@pytest.mark.parametrize("name", ["huber_loss", "smooth_l1_loss"])
def test_losses_that_do_not_fit_the_inputs_dtype(name: str) -> None:
    def program(lib: Any, see: Any) -> None:
        kinds = (lib.bool, lib.int64, lib.float32, lib.float64)
        for a in kinds:
            for b in kinds:
                x, y = lib.ones(2, dtype=a), lib.tensor([1, 0]).to(b)
                see.attempt(getattr(lib.nn.functional, name), x, y)

    same(program)
