"""State dicts of schedulers and averages in PyTorch's form, against torch's."""

from __future__ import annotations

import io
import types
from typing import Any

import pytest
from helpers.sameness import Log, same

import leafax


def optimizer(t: Any) -> Any:
    return t.optim.SGD([t.ones(1, requires_grad=True)], lr=0.5, momentum=0.9)


@pytest.mark.parametrize("kind", ["lambda", "multistep", "onecycle", "three phases", "cyclic"])
def test_state_dicts_hold_torchs_entries_in_its_order_and_are_written(kind: str) -> None:
    @same
    def program(t: Any, log: Log) -> None:
        s, o = t.optim.lr_scheduler, optimizer(t)
        scheduler = {
            "lambda": lambda: s.LambdaLR(o, lambda e: 0.9**e),
            "multistep": lambda: s.MultiStepLR(o, [2, 2, 5]),
            "onecycle": lambda: s.OneCycleLR(o, 0.5, total_steps=7),
            "three phases": lambda: s.OneCycleLR(o, 0.5, total_steps=7, three_phase=True),
            "cyclic": lambda: s.CyclicLR(o, 0.1, 0.5, 2, mode="exp_range"),
        }[kind]()
        for _ in range(3):
            o.step()
            scheduler.step()
        packed = scheduler.state_dict()
        log([*packed.items()])
        file = io.BytesIO()
        t.save(packed, file)
        file.seek(0)
        read = t.load(file, weights_only=True)
        log([*read.items()], type(read.get("milestones")).__name__)


def test_a_one_cycle_goes_on_from_an_old_state_dict() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        s, o = t.optim.lr_scheduler, optimizer(t)
        scheduler = s.OneCycleLR(o, 0.5, total_steps=7)
        packed = scheduler.state_dict() | {"anneal_func": s.OneCycleLR._annealing_linear}
        del packed["_anneal_func_type"], scheduler._anneal_func_type
        scheduler.load_state_dict(packed)
        for _ in range(6):
            o.step()
            scheduler.step()
            log(o.param_groups[0]["lr"], o.param_groups[0]["momentum"])


def test_names_that_programs_import() -> None:
    s, o = leafax.optim.lr_scheduler, optimizer(leafax)
    assert issubclass(s._LRScheduler, s.LRScheduler)
    assert s.EPOCH_DEPRECATION_WARNING.startswith("The epoch parameter in `scheduler.step()`")
    assert isinstance(s.CyclicLR(o, 0.1, 0.5)._scale_fn_ref, types.FunctionType)


def test_averages_of_any_dtype_and_count() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        s = t.optim.swa_utils
        for update in (s.get_ema_multi_avg_fn(0.5), s.get_swa_multi_avg_fn()):
            for dtype in (t.float64, t.complex128, t.int64):
                for n in (1, t.tensor(3)):
                    mine = [t.arange(4).to(dtype), t.ones(2, dtype=dtype)]
                    log.attempt(update, mine, [x * 9 for x in mine], n)
                    log([x.clone() for x in mine])
