"""Hooks of optimizers, and optimizers that a user writes, against torch's."""

from __future__ import annotations

import copy
import importlib
from typing import Any

from helpers.sameness import Log, same

import leafax


def leaf(t: Any) -> Any:
    p = t.tensor([1.0, -2.0, 3.0], dtype=t.float64, requires_grad=True)
    p.grad = t.tensor([0.5, 1.0, -1.5], dtype=t.float64)
    return p


def values(x: Any) -> Any:
    """A state dict without the versions of its tensors, which count kernels."""
    if isinstance(x, dict):
        return {k: values(v) for k, v in x.items()}
    return x.detach().clone() if hasattr(x, "detach") else x


def test_hooks_of_steps_see_the_arguments_and_may_change_them() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        p = leaf(t)
        for cls in (t.optim.SGD, t.optim.Adam, t.optim.AdamW):
            opt, seen = cls([p], lr=0.1), []
            before = opt.register_step_pre_hook(
                lambda o, args, kwargs, seen=seen: seen.append(("before", len(args), [*kwargs]))
            )
            after = opt.register_step_post_hook(
                lambda o, args, kwargs, seen=seen: seen.append(("after", o.param_groups[0]["lr"]))
            )
            opt.step()
            log(opt.step(closure=lambda: 6.0))
            before.remove()
            opt.step(lambda: 5.0)
            after.remove()
            opt.step()
            log(seen)
            with opt.register_step_pre_hook(lambda o, a, k: (a, {"closure": lambda: 42.0})):
                log(opt.step())
            log(opt.step(), p)


def test_a_hook_of_steps_returns_two_things_or_none() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        for wrong in (3, (1, 2, 3), [1, 2]):
            opt = t.optim.SGD([leaf(t)], lr=0.1)
            opt.register_step_pre_hook(lambda o, a, k, wrong=wrong: wrong)
            try:
                opt.step()
            except RuntimeError as e:
                log(str(e).partition("> must")[2])


def test_hooks_of_all_optimizers_come_around_those_of_one() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        module = importlib.import_module(f"{t.__name__}.optim.optimizer")
        seen: list[Any] = []
        opt = t.optim.SGD([leaf(t)], lr=0.1)
        opt.register_step_post_hook(lambda o, a, k: seen.append("mine after"))
        opt.register_step_pre_hook(lambda o, a, k: seen.append("mine before"))
        first = module.register_optimizer_step_pre_hook(lambda o, a, k: seen.append("all before"))
        last = module.register_optimizer_step_post_hook(lambda o, a, k: seen.append("all after"))
        try:
            opt.step()
            t.optim.Adam([leaf(t)]).step()
        finally:
            first.remove(), last.remove()
        opt.step()
        log(seen)


def test_what_a_hook_computes_after_the_step_is_part_of_its_program() -> None:
    p = leaf(leafax)
    average = p.detach().clone()
    opt = leafax.optim.SGD([p], lr=0.1)

    def after(o: Any, args: Any, kwargs: Any) -> None:
        with leafax.no_grad():
            average.lerp_(p, 0.5)

    opt.register_step_post_hook(after)
    leafax.explain(clear=True)
    for _ in range(4):
        opt.zero_grad()
        (p * p).sum().backward()
        opt.step()
    assert [run.reason for run in leafax.explain()] == ["optimizer.step()"] * 4


def test_hooks_of_state_dicts() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        opt, seen = t.optim.Adam([leaf(t)], lr=0.1), []
        opt.step()
        opt.register_state_dict_pre_hook(lambda o: seen.append("second"))
        first = opt.register_state_dict_pre_hook(lambda o: seen.append("first"), prepend=True)
        opt.state_dict()
        first.remove()

        def marked(o: Any, packed: Any) -> None:
            packed["note"] = "x" in packed

        opt.register_state_dict_post_hook(marked)
        opt.register_state_dict_post_hook(lambda o, d: {**d, "x": 1}, prepend=True)
        log([(k, v) for k, v in opt.state_dict().items() if k in ("note", "x")])

        def other_rate(o: Any, packed: Any) -> None:
            packed["param_groups"] = [dict(packed["param_groups"][0], lr=0.5)]

        opt.register_load_state_dict_pre_hook(other_rate)
        empty = opt.register_load_state_dict_pre_hook(lambda o, d: {**d, "state": {}}, prepend=True)
        opt.register_load_state_dict_post_hook(lambda o: seen.append(o.param_groups[0]["lr"]))
        packed = opt.state_dict()
        opt.load_state_dict(packed)
        log(packed["param_groups"][0]["lr"], len(opt.state))
        empty.remove()
        opt.load_state_dict(packed)
        log(len(opt.state), seen)
        copied, count = copy.deepcopy(opt), len(seen)
        copied.state_dict()
        log(len(seen) - count)  # copies have no hooks


def own(t: Any) -> Any:
    class Heavy(t.optim.Optimizer):  # type: ignore[misc, name-defined]
        def __init__(self, params: Any, lr: float = 0.1) -> None:
            super().__init__(params, {"lr": lr})

        def __setstate__(self, state: Any) -> None:
            super().__setstate__(state)
            for group in self.param_groups:
                group.setdefault("later", 7)

        def step(self, closure: Any = None) -> Any:
            loss = None if closure is None else closure()
            with t.no_grad():
                for group in self.param_groups:
                    for p in group["params"]:
                        state = self.state[p]
                        if not state:
                            state["count"], state["mean"] = 0, t.zeros_like(p)
                        state["count"] += 1
                        state["mean"].mul_(0.9).add_(p.grad)
                        p.add_(state["mean"], alpha=-group["lr"])
            return loss

    return Heavy


def test_an_optimizer_of_ones_own_has_hooks_schedules_and_state_dicts() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        p, cls, seen = leaf(t), own(t), []
        opt = cls([p])
        opt.register_step_post_hook(lambda *args: seen.append(len(args)))
        schedule = t.optim.lr_scheduler.StepLR(opt, 2)
        for _ in range(4):
            log(opt.step(lambda: 3.0))
            schedule.step()
        log(p, seen, repr(opt), values(opt.state_dict()))
        again = cls([p])
        again.load_state_dict(copy.deepcopy(opt.state_dict()))
        again.step()
        log(p, repr(again), values(again.state_dict()))


def test_an_own_step_ends_the_program_and_is_left_out_where_gradients_are_infinite() -> None:
    p = leaf(leafax)
    opt = own(leafax)([p])
    leafax.explain(clear=True)
    for _ in range(3):
        opt.zero_grad()
        (p * p).sum().backward()
        opt.step()
    assert [run.reason for run in leafax.explain()] == ["optimizer.step()"] * 3

    @same
    def program(t: Any, log: Log) -> None:
        p, scaler = leaf(t), t.amp.GradScaler("cpu", init_scale=4.0)
        opt = own(t)([p])
        for factor in (1.0, float("inf"), 2.0):
            opt.zero_grad()
            scaler.scale((p * factor).sum()).backward()
            scaler.step(opt)
            scaler.update()
            log(p, scaler.get_scale(), opt.state[p]["count"])


def test_a_hyperparameter_may_be_required() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        required = importlib.import_module(f"{t.__name__}.optim.optimizer").required
        log(repr(required))
        with log.catch():
            t.optim.Optimizer([leaf(t)], {"lr": required})
        log(repr(t.optim.Optimizer([{"params": [leaf(t)], "lr": 2}], {"lr": required})))
