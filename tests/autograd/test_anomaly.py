"""Anomaly detection and gradcheck against torch."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import pytest
import torch
from helpers.sameness import Log, same

import leafax


@pytest.mark.parametrize("lib", [torch, leafax])
def test_a_nan_names_the_op_and_the_line(lib: Any) -> None:
    x = lib.tensor([0.0, 1.0], requires_grad=True)
    with warnings.catch_warnings(record=True) as caught, lib.autograd.set_detect_anomaly(True):
        warnings.simplefilter("always")
        y = x.sqrt() * 0
        with pytest.raises(RuntimeError) as info:
            y.sum().backward()
    assert str(info.value) == "Function 'SqrtBackward0' returned nan values in its 0th output."
    text = str(caught[-1].message)
    assert text.startswith(
        "Error detected in SqrtBackward0. Traceback of forward call that caused the error:\n"
    )
    assert f'File "{__file__}", line ' in text and "y = x.sqrt() * 0" in text


def test_the_whole_stack_of_each_recording_is_told() -> None:
    """Not that of one with the same ops, which the recorder may have met before."""

    def stacks(lib: Any) -> list[str]:
        x = lib.ones(3, requires_grad=True)

        def one() -> Any:
            return lib.nn.functional.silu(x.exp())

        def two() -> Any:
            return lib.nn.functional.silu(x.exp())

        found = []
        for make in (one, two, lambda: one()):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                with lib.autograd.detect_anomaly():
                    y = make()
                    z = y * y
                    y.mul_(2)
                    with pytest.raises(RuntimeError):
                        z.sum().backward()
                    x.tolist()
            found.append(str(caught[-1].message).split("(Triggered")[0].strip())
        return found

    assert stacks(leafax) == stacks(torch)


def test_modes() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        log(torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
        x = torch.tensor([0.0, 1.0], requires_grad=True)
        with torch.autograd.set_detect_anomaly(True, check_nan=False):
            log(torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
            (x.sqrt() * 0).sum().backward()
        try:
            with torch.autograd.set_detect_anomaly(True):
                (x * x).sum().backward()
                raise ValueError
        except ValueError:
            log(torch.is_anomaly_enabled())
        with torch.autograd.detect_anomaly():
            log(torch.is_anomaly_enabled())
            (x * x).sum().backward()
        log(torch.is_anomaly_enabled())


def test_what_comes_after_the_nan_does_not_run() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([0.0, 1.0], requires_grad=True)
        y = x * 1
        y.register_hook(lambda g: log("never"))
        z = y.sqrt()
        z.register_hook(lambda g: log(g))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with torch.autograd.set_detect_anomaly(True), log.catch():
                (z * 0).sum().backward()
        log(str(caught[-1].message).split(" (Triggered")[0], x.grad)  # no traceback

    @same
    def by_index(torch: Any, log: Log) -> Any:
        x = torch.tensor([0.0], requires_grad=True)
        with warnings.catch_warnings(), torch.autograd.set_detect_anomaly(True), log.catch():
            warnings.simplefilter("ignore")
            (2 * x.sqrt() * float("nan")).sum().backward()


def test_any_error_tells_where_the_op_was_recorded() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        class Fails(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * 2

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                raise ValueError("no gradient")

        x = torch.ones(2, requires_grad=True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with torch.autograd.set_detect_anomaly(True), log.catch():
                y = Fails.apply(x)
                y.sum().backward()
        text = str(caught[-1].message)
        log(text.startswith("Error detected in FailsBackward. Traceback of forward call"))
        log("y = Fails.apply(x)" in text)


def test_gradcheck() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        class Wrong(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * 2

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g * 3

        x = torch.tensor([0.5, 1.5], dtype=torch.float64, requires_grad=True)
        y = torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True)
        check, second = torch.autograd.gradcheck, torch.autograd.gradgradcheck
        log(check(lambda x, y: (x.sin() * y, x.sum()), (x, y)))
        log(second(lambda x, y: x.sin() * y * y, (x, y)))
        log(check(Wrong.apply, (x,), raise_exception=False))
        log.attempt(check, lambda x: x * 2, (x.detach(),))
        with log.catch():
            check(Wrong.apply, (x,))


def test_what_a_backward_pass_made_says_what_the_pass_was_running() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        class Inner(torch.autograd.Function):  # type: ignore[misc]
            @staticmethod
            def forward(ctx: Any, a: Any) -> Any:
                return a * 2.0

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g * float("nan")

        class Outer(torch.autograd.Function):  # type: ignore[misc]
            @staticmethod
            def forward(ctx: Any, a: Any) -> Any:
                ctx.save_for_backward(a)
                return a.sum(0, keepdim=True)

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return Inner.apply(ctx.saved_tensors[0] * g)

        def twice(out: Any) -> None:
            (grad,) = torch.autograd.grad(out, x, create_graph=True)
            grad.sum().backward()

        x = torch.rand(3, requires_grad=True)
        for early in (True, False):
            out = None if early else Outer.apply(x)
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError) as e:
                    twice(Outer.apply(x) if early else out)
            log(str(e.value))
            # The first line: then come PyTorch's own frames.
            log([str(w.message).lstrip().split(":\n")[0].split(" (Trig")[0] for w in seen][1:])


def test_warnings_that_are_errors_do_not_hide_the_error(capsys: Any) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.ones(2, requires_grad=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError) as e:
                warnings.simplefilter("error")
                y = x + 1
                z = (y**2).sum()
                y += 1
                z.backward()
        log(str(e.value))
        log(capsys.readouterr().err.split("\n")[0])


def test_gradcheck_warns_of_undefined_gradients_and_names_its_error() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        import importlib

        module = importlib.import_module(torch.__name__ + ".autograd.gradcheck")
        log(torch.autograd.gradcheck is module.gradcheck, callable(module.gradgradcheck))

        def refuses(x: Any) -> Any:
            def hook(g: Any) -> None:
                if g is None:
                    raise RuntimeError("x is undefined")

            y = x.clone()
            y.register_hook(hook)
            return y

        x = torch.ones(1, dtype=torch.double, requires_grad=True)
        with warnings.catch_warnings(record=True) as seen, pytest.raises(RuntimeError) as e:
            warnings.simplefilter("always")
            module.gradcheck(refuses, (x,))
        log(str(e.value), isinstance(e.value, module.GradcheckError))
        log([str(w.message) for w in seen])


def test_an_error_at_a_leaf() -> None:
    """A leaf's node was recorded by nothing: there is no line to tell."""

    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.ones(2, 3, requires_grad=True)
        x.register_hook(lambda g: g[:, :1])
        with warnings.catch_warnings(record=True) as seen, pytest.raises(RuntimeError) as e:
            warnings.simplefilter("always")
            with torch.autograd.detect_anomaly():
                (x * 2).sum().backward()
        log(str(e.value).replace("<lambda>", ""), "AccumulateGrad" in str(seen[-1].message))


@pytest.mark.parametrize("lib", [torch, leafax])
def test_threads_that_start_in_the_mode_have_it(lib: Any) -> None:
    found: list[Any] = []

    def work() -> None:
        found.append((lib.is_anomaly_enabled(), lib.is_anomaly_check_nan_enabled()))
        y = lib.tensor([0.0], requires_grad=True).sqrt() * 0
        try:
            y.sum().backward()
        except RuntimeError as error:
            found.append(str(error))

    for enabled in (True, False):
        with warnings.catch_warnings(), lib.autograd.set_detect_anomaly(enabled):
            warnings.simplefilter("ignore")
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
    said = "Function 'SqrtBackward0' returned nan values in its 0th output."
    assert found == [(True, True), said, (False, True)]


def test_what_a_second_pass_or_a_checkpoint_recorded_says_what_induced_it() -> None:
    def told(lib: Any) -> list[list[str]]:
        def second() -> None:
            (g,) = lib.autograd.grad(x.abs().pow(1.5).sum(), x, create_graph=True)
            g.sum().backward()

        def again() -> None:
            checkpoint = lib.utils.checkpoint.checkpoint
            checkpoint(lambda a: a / 0 * 0, x, use_reentrant=True).sum().backward()

        found = []
        x = lib.tensor([0.0, 1.0], requires_grad=True)
        for program in (second, again, second, again):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                with lib.autograd.set_detect_anomaly(True), pytest.raises(RuntimeError):
                    program()
            found.append([str(w.message).split(". Traceback of")[0] for w in caught])
        return found

    assert told(leafax) == told(torch)
