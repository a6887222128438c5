"""PyTorch's steps inside an op: casts have nodes, writes count in the result's version."""

from __future__ import annotations

import io
from typing import Any

import pytest
from helpers.sameness import Log, same

LINES = (
    "F.softmax(x, 0, dtype=t.float64)", "x.softmax(0, dtype=t.float32)",
    "t.log_softmax(x, 0, t.float64)", "F.softmin(x, 1, dtype=t.float64)",
    "t.float_power(x, x)", "x.float_power(2)", "t.float_power(2, x)", "x.double().float_power(x)",
    "t.float_power(c, x)", "x.float_power(1j)", "l.float_power(l)",
    "t.fft.fft(x)", "t.fft.ifft(x, dim=-1)", "t.fft.fft2(x)", "t.fft.ifftn(x)", "t.fft.irfft(x)",
    "t.fft.hfft(x)", "t.fft.hfft(c, norm='ortho')", "t.fft.ihfft(x)",
    "t.fft.ihfft(l, norm='forward')",
    "t.fft.ifft(x, norm='ortho')", "t.fft.hfft(l)", "t.fft.ifft(l, norm='backward')",
    "t.fft.fft(c)", "t.fft.fftn(l)", "t.fft.irfft2(c)",
    "t.isclose(x, x)", "t.isclose(x, x, rtol=0, atol=0)", "x.isclose(x, equal_nan=True)",
    "t.isclose(l, l, equal_nan=True)", "t.isclose(l, l, rtol=0.0, atol=0.0)",
    "t.quantile(x, 0.3)", "t.quantile(x, 0.5, 0, interpolation='nearest')",
    "t.quantile(x, t.tensor([0.1, 0.5]))", "x.nanquantile(0.5, 0, True)",
    "F.one_hot(l)", "F.one_hot(l, 9)", "F.one_hot(l[:0], 3)",
    "t.linalg.matrix_rank(x)", "t.linalg.matrix_rank(x @ x.T, hermitian=True)",
    "t.linalg.matrix_rank(x, tol=0.1)", "t.linalg.matrix_rank(x, atol=t.tensor(0.1))",
    "t.linalg.svdvals(x)", "t.linalg.svdvals(x.detach())", "t.linalg.norm(x, 2)",
    "t.linalg.cond(x)", "t.linalg.matrix_norm(x, 'nuc')",
    "t.linalg.vecdot(x[0, 0], x[0, 1])", "t.linalg.vecdot(c[0, 0], c[0, 1])",
    "t.linalg.vecdot(x[0, 0], x[0, 1], dim=1)",
    "t.linalg.lstsq(x[:, :2], x).solution", "t.linalg.lstsq(x, x).solution",
    "t.linalg.lstsq(x[:, :2].expand(2, 2, 2), x.expand(2, 2, 3)).solution",
    "t.linalg.lstsq(x[:, :2], x[:, 0]).solution",
    "t.Tensor(x)", "t.Tensor(l)", "t.FloatTensor(x[None])", "x.new(x)", "t.Tensor(x.detach())",
)  # fmt: skip


@pytest.mark.quick(9)
@pytest.mark.parametrize("line", LINES)
def test_what_happens_on_the_way(line: str) -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        x = lib.tensor([[1.5, 2.0, -0.5], [0.25, 1.0, 3.0]], requires_grad=True)
        y = log.attempt(lambda: eval(line, {
            "t": lib, "F": lib.nn.functional, "x": x, "c": x * (1 + 2j),
            "l": lib.tensor([[1, 2], [0, 1]]),
        }))  # fmt: skip
        if y is not None:
            log(y.stride(), y.output_nr, y.grad_fn)
            if y.requires_grad:
                y.abs().sum().backward()
                log.gradients(x.grad)


def test_loaded_tensors_were_written_to() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        file = io.BytesIO()
        lib.save({"a": lib.ones(2, requires_grad=True), "b": lib.tensor([1, 2])}, file)
        file.seek(0)
        log(lib.load(file))


def test_the_old_constructor_keeps_history() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        x = lib.ones(2, requires_grad=True)
        y = lib.Tensor(x * 3)
        y.mul_(2)
        log(y)
        y.sum().backward()
        log.gradients(x.grad)
