"""Run samples of PyTorch's database through torch and leafax: one by one, or many as one program.

Compiling is what takes time, and a program of forty samples compiles in a third of the time that
forty programs take. What goes wrong in such a program runs again by itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from unittest import mock

import torch

import leafax
from helpers.op_compare import (
    RANDOM,
    TOLERANCE,
    UNSET,
    UNSIGNED,
    WIDER,
    answer,
    as_exact,
    compare,
    compare_gradients,
    compare_ties,
    gradients,
    our_answer,
    tied,
    wide_answer,
)  # fmt: skip
from helpers.op_samples import (
    DROPPED,
    Mismatch,
    describe,
    flat,
    to_leafax,
    to_torch,
)  # fmt: skip

SEED = torch.manual_seed
Form = tuple[str, Callable[..., Any], Callable[..., Any]]


class Refused(Exception):
    """torch raises for this sample."""


class Pair(NamedTuple):
    """One sample as it came out of both libraries; leafax's values may still be pending."""

    entry: Any
    sample: Any
    dtype: torch.dtype
    form: Form
    expected: Any
    got: Any
    leaves: list[torch.Tensor]  # torch's inputs that require grad
    mine: list[Any]  # leafax's
    drawn: bool  # the values are not said
    grads: Any  # of `gradients`; "later" if the values are to be looked at first

    def check(self) -> None:
        """Raise `Mismatch` unless values, facts and gradients agree."""
        dtype, name = self.dtype, self.entry.name
        if self.drawn:
            compare(name, self.expected, self.got, None)
            return
        grads = self.grads
        try:
            compare(name, self.expected, self.got, dtype)
            if grads == "later":
                grads = self.gradients()
            compare_gradients(grads, dtype)
        except Mismatch as error:
            if tied(name, self.sample):
                compare(name, self.expected, self.got, None)
                compare_ties(name, self.sample, self.expected, self.got, dtype)
                return
            if "differ" not in str(error) or dtype not in WIDER:
                raise
            compare(name, self.expected, self.got, None)
            variant, _, theirs = self.form
            exact = wide_answer(theirs, self.sample, WIDER[dtype], variant == "inplace", self.seen)
            have = None if grads in (None, "later") else grads[1]
            as_exact(
                error, exact, answer(self.seen(self.expected), self.leaves),
                our_answer(self.seen(self.got), self.mine, have), TOLERANCE[dtype] / 10,
            )  # fmt: skip

    def seen(self, results: Any) -> Any:
        """Return the unique part of the results: vectors of `svd`, for one, have no fixed sign."""
        if self.entry.name not in UNSIGNED:
            return results
        return self.sample.output_process_fn_grad(results)

    def gradients(self, last: bool = False) -> Any:
        """torch's and leafax's gradients."""
        if self.drawn:
            return None
        return gradients(
            self.seen(self.expected), self.seen(self.got), self.leaves, self.mine, last
        )


def record(entry: Any, form: Form, sample: Any, dtype: torch.dtype, together: bool) -> Pair:
    """Run one form of a sample in torch, and record it and its gradients in leafax.

    Args:
      together: leafax computes values and gradients as one program; else values come first.
    """
    variant, ours, theirs = form
    mine: list[Any] = []
    our_args, our_kwargs = arguments(sample, mine)
    if variant == "inplace":
        our_args = (our_args[0].clone(), *our_args[1:])
    try:
        expected, leaves = in_torch(form, sample)
    except Exception as error:
        raise Refused(error) from None
    drawn = entry.name in UNSET or (
        bool(entry.name in RANDOM or sample.kwargs.get("dropout_p"))
        and any(_other(expected, _seeded(form, sample, n)) for n in range(32))
    )
    got = ours(*our_args, **our_kwargs)
    pair = Pair(entry, sample, dtype, form, expected, got, leaves, mine, drawn, "later")
    if together and len(flat(expected)) == len(flat(got)):
        return pair._replace(grads=pair.gradients(last=True))
    return pair


def in_torch(form: Form, sample: Any) -> tuple[Any, list[torch.Tensor]]:
    """torch's results, and its inputs that require grad."""
    leaves: list[torch.Tensor] = []
    args, kwargs = to_torch((sample.input, *sample.args), leaves), to_torch(sample.kwargs, leaves)
    if form[0] == "inplace":
        args = (args[0].clone(), *args[1:])
    return form[2](*args, **kwargs), leaves


def _seeded(form: Form, sample: Any, seed: int) -> Any:
    with mock.patch.object(torch, "manual_seed", lambda _: SEED(seed)):  # some set it themselves
        torch.manual_seed(0)
        return in_torch(form, sample)[0]


def _other(before: Any, after: Any) -> bool:
    return not all(
        torch.equal(a, b) if isinstance(a, torch.Tensor) else a is b or a == b
        for a, b in zip(flat(before), flat(after), strict=True)
    )


def arguments(sample: Any, tensors: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """leafax's arguments of a sample; those that require grad go to `tensors`."""
    args = to_leafax((sample.input, *sample.args), tensors)
    kwargs = to_leafax(sample.kwargs, tensors)
    return args, {k: v for k, v in kwargs.items() if k not in DROPPED}


def run(entry: Any, form: Form, sample: Any, dtype: torch.dtype, together: bool = False) -> None:
    """One form of a sample through both libraries; raises what is wrong."""
    try:
        pair = record(entry, form, sample, dtype, together)
    except Refused as refused:
        args, kwargs = arguments(sample, [])
        if form[0] == "inplace":
            args = (args[0].clone(), *args[1:])
        try:
            form[1](*args, **kwargs)
            leafax.synchronize()
        except Exception:
            return
        raise Mismatch(f"torch raises {refused}") from None
    pair.check()


def wrong(
    entry: Any, forms: list[Form], number: int, sample: Any, dtype: torch.dtype,
    together: bool = False,
) -> Iterator[str]:  # fmt: skip
    """Yield the differences that one sample shows, as text."""
    for form in forms:
        try:
            run(entry, form, sample, dtype, together)
        except Exception as error:
            yield told(form, error, number, sample)


def told(form: Form, error: Exception, number: int, sample: Any) -> str:
    """One line that says what was wrong with which sample."""
    text = f"{form[0]}: {type(error).__name__}: {error}".split("\n")[0][:200]
    return f"{text} [{number}: {describe(sample)}]"


class Case(NamedTuple):
    """A sample of an entry."""

    dtype: torch.dtype
    number: int
    sample: Any


class Job(NamedTuple):
    """A case, and the entry and its forms that it is run in."""

    entry: Any
    forms: list[Form]
    case: Case


def batch(
    entry: Any, forms: list[Form], cases: list[Case], together: bool = True
) -> Iterator[tuple[Case, list[str]]]:
    """Yield each sample of an entry and what is wrong with it, see `batch_jobs`."""
    for job, bad in batch_jobs([Job(entry, forms, case) for case in cases], together):
        yield job.case, bad


def batch_jobs(jobs: list[Job], together: bool = True) -> Iterator[tuple[Job, list[str]]]:
    """Yield each job and what is wrong with it; leafax computes all of them as one program.

    What only goes wrong in company is wrong too.

    Args:
      jobs: what to run.
      together: values and gradients are one program; else values are the first and gradients,
        from what the first kept, the second.
    """
    doubtful = _doubtful(jobs, together)
    for n, job in enumerate(jobs):
        entry, forms, case = job
        bad = []
        for form in forms:
            if (n, form[0]) not in doubtful:
                continue
            alone = list(wrong(entry, [form], case.number, case.sample, case.dtype, together))
            before = doubtful[n, form[0]]
            bad += alone or ([f"only together: {before}"] if before else [])
        yield job, bad


def _doubtful(jobs: list[Job], together: bool) -> dict[tuple[int, str], str]:
    """The forms of samples to look at one by one, and what their values had wrong, if anything."""
    doubtful: dict[tuple[int, str], str] = {}
    pairs: list[tuple[int, Pair]] = []
    try:
        for n, (entry, forms, case) in enumerate(jobs):
            for form in forms:
                try:
                    pairs.append((n, record(entry, form, case.sample, case.dtype, together)))
                except Refused:
                    doubtful[n, form[0]] = ""
        leafax.synchronize()
        if not together:
            pairs = [(n, pair._replace(grads=pair.gradients(last=True))) for n, pair in pairs]
            leafax.synchronize()
    except Exception:  # it may be another sample's fault that came up here
        with contextlib.suppress(Exception):
            leafax.synchronize()
        return {(n, form[0]): "" for n, job in enumerate(jobs) for form in job.forms}
    for n, pair in pairs:
        case = jobs[n].case
        try:
            pair.check()
        except Exception as error:
            doubtful[n, pair.form[0]] = told(pair.form, error, case.number, pair.sample)
    return doubtful
