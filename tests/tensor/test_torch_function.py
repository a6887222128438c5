"""`__torch_function__` of classes derived from `Tensor`, of other objects and of modes."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
from typing import Any

import pytest
import torch
from helpers.sameness import Log, same

import leafax
from leafax.utils._device import DeviceContext

CALLS = [
    "x + 1", "1 + x", "1 - x", "2 / x", "x // 2", "2 % x", "x ** 2", "2 ** x", "x @ x", "-x",
    "abs(x)", "~(x > 1)", "x == 1", "x < 2", "(x > 1) & (x > 2)", "x[0]", "x[1:]", "x.shape",
    "len(x)", "bool(x[0] > 5)", "float(x[0])", "x.dim()", "x.sum(0, keepdim=True)", "x.to(t.int64)",
    "x.requires_grad", "x.grad", "x.T", "t.add(x, x, alpha=2)", "t.cat([x, x])",
    "t.stack([x, x], 0)",
    "t.where(x > 1, x, 0.0)", "t.max(x, 0)", "t.ones(2)", "t.tensor([1])", "t.zeros_like(x)",
    "t.einsum('i,i', x, x)", "t.split(x, 2)", "t.norm(x)", "t.meshgrid(x, x, indexing='ij')",
    "F.relu(x)", "F.softmax(x, -1)", "F.linear(x, x)", "F.dropout(x, 0.0)", "F.mse_loss(x, x)",
    "F.cross_entropy(x, x)", "F.layer_norm(x, (3,))", "F.gelu(x)", "t.linalg.norm(x)",
    "t.fft.fft(x)", "t.special.expit(x)", "x.unbind()", "t.equal(x, x)", "x.numpy()", "x.clone()",
    "t.is_tensor(x)", "t.manual_seed(0)", "t.nn.Linear(3, 1)(x).shape", "x.add_(1)", "x.data",
    "t.nn.init.constant_(x, 2.0)",
]  # fmt: skip


def named(lib: Any, func: Any) -> str:
    return str(lib.overrides.resolve_name(func))


def shown(types: Any) -> list[str]:
    return [k.__name__ for k in types]


@pytest.mark.parametrize("first", range(0, len(CALLS), 12))
def test_what_modes_and_classes_are_told(first: int) -> None:
    def program(t: Any, log: Log) -> None:
        class Mode(t.overrides.TorchFunctionMode):  # type: ignore[misc]
            def __torch_function__(
                self, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                name = named(t, func)
                if "__get__" not in name or name.endswith("shape.__get__"):
                    told = kwargs if kwargs is None else list(kwargs)
                    seen.append((name, shown(types), len(args), told))
                return func(*args, **(kwargs or {}))

        class Sub(t.Tensor):  # type: ignore[misc]
            @classmethod
            def __torch_function__(
                cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                seen.append((named(t, func), shown(types), len(args), list(kwargs or {})))
                return super().__torch_function__(func, types, args, kwargs)

        F = t.nn.functional  # noqa: N806
        for call in CALLS[first : first + 12]:
            for x in (t.tensor([1.0, 2.0, 3.0]), t.tensor([1.0, 2.0, 3.0]).as_subclass(Sub)):
                seen: list[Any] = []
                with Mode() if type(x) is t.Tensor else t.no_grad():
                    made = eval(call, {"t": t, "F": F, "x": x})
                if "nn.Linear" in call:  # how a layer is made is its own affair
                    seen = seen[-1:]
                kinds = [type(y).__name__ for y in (made if isinstance(made, tuple) else (made,))]
                log(call, [s for s in seen if s[0] != "None"], kinds)

    same(program)


def test_results_are_of_the_class() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        class Sub(t.Tensor):  # type: ignore[misc]
            pass

        class Below(Sub):
            pass

        class Other(t.Tensor):  # type: ignore[misc]
            pass

        x = t.tensor([1.0, 2.0], requires_grad=True)
        s = x.as_subclass(Sub)
        y = (s * 2 + x).relu()
        log(y, str(y), type(y), type(y.grad_fn).__name__, y._is_view())
        y.sum().backward()
        log(x.grad.tolist(), type(x.grad), type(s.grad_fn).__name__, s.is_leaf)
        log(type(s + Below([1.0, 2.0])), type(Below([1.0, 2.0]) + s), type(t.cat([s, s])))
        log(type(t.max(s, 0)).__name__, [type(p) for p in t.max(s, 0)], [type(p) for p in s])
        log(type(s.shape).__name__, type(s.detach()), type(s.data), type(s.tolist()))
        log.attempt(lambda: s + Other([1.0, 2.0]))
        log(type(t.nn.functional.linear(s, t.ones(3, 2))), type(t.nn.Linear(2, 3)(s)))
        with t._C.DisableTorchFunctionSubclass():
            log(type(s + 1))
        p = t.nn.Parameter(t.ones(2))
        log(type(p * 2), type(t.nn.Parameter(s.detach())))
        z = s.detach().clone()
        z += 1
        z[0] = 5
        log(z, type(z.add_(1)), z.add_(1) is z)
        w = Sub._make_subclass(Sub, t.ones(2), True)
        w.sum().backward()
        log(type(w.grad), w.requires_grad, w.is_leaf)
        v = t.ones(2).as_subclass(Sub).requires_grad_()
        t.optim.SGD([v], lr=0.5).step()
        log(type(v), v)


class Ours(leafax.Tensor):
    """A class that pickle finds."""


class Theirs(torch.Tensor):
    """A class that pickle finds."""


def test_copies_are_of_the_class() -> None:
    s = Ours([1.0, 2.0])
    assert type(copy.deepcopy(s)) is type(copy.copy(s)) is Ours  # PyTorch asks for `new_empty`
    for lib, kind in ((torch, Theirs), (leafax, Ours)):
        t: Any = kind([1.0, 2.0])
        t.word = "kept"
        back = pickle.loads(pickle.dumps(t))
        assert type(back) is kind and back.word == "kept" and back.tolist() == [1.0, 2.0]
        buffer = io.BytesIO()
        lib.save(t, buffer)
        buffer.seek(0)
        assert type(lib.load(buffer, weights_only=False)) is kind
        collate = lib.utils.data.default_collate
        assert type(collate([t, t])) is kind and type(collate([t[0], t[1]])) is kind
        name = kind.__name__
        assert repr(lib.nn.Parameter(t)) == f"Parameter({name}([1., 2.], requires_grad=True))"


def test_objects_that_are_no_tensors() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        F = t.nn.functional  # noqa: N806

        class Diagonal:
            def __init__(self, value: float) -> None:
                self.value = value

            @classmethod
            def __torch_function__(
                cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                if func not in handled:
                    return NotImplemented
                return handled[func](*args, **(kwargs or {}))

        handled = {
            t.mean: lambda d: d.value,
            t.add: lambda a, b: ("add", getattr(a, "value", a), getattr(b, "value", b)),
            t.Tensor.add: lambda a, b: "tensor first",
            t.Tensor.mul: lambda a, b: "times",
            t.stack: lambda ds: len(ds),
            F.relu: lambda d, inplace=False: ("relu", inplace),
            t.nn.functional.linear: lambda *args, **kwargs: "linear",
        }
        d = Diagonal(2.0)
        x = t.ones(2)
        log(t.mean(d), t.add(d, 1), t.add(1, d), t.stack([d, d]), x + d, x * d, F.relu(d))
        log(F.relu(d, inplace=True), t.nn.Linear(2, 2)(d))
        log.attempt(t.sum, d)
        log.attempt(F.softmax, d, 0)
        log.attempt(lambda: x - d)
        log(t.overrides.is_tensor_like(d), t.overrides.is_tensor_like(x))
        log(t.overrides.has_torch_function((x, d)), t.overrides.has_torch_function((x, 1)))
        log(t.overrides.has_torch_function_unary(d), t.overrides.has_torch_function_variadic(x))


def test_functions_of_a_users_own() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        class Sub(t.Tensor):  # type: ignore[misc]
            @classmethod
            def __torch_function__(
                cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                log(func.__name__, shown(types), len(args), sorted(kwargs or {}))
                if func.__name__ == "refused":
                    return NotImplemented
                with t._C.DisableTorchFunctionSubclass():
                    return func(*args, **(kwargs or {}))

        @t.overrides.wrap_torch_function(lambda a, b=1: (a,))
        def double(a: Any, b: int = 1) -> Any:
            return a * 2 * b

        def refused(a: Any) -> Any:
            return t.overrides.handle_torch_function(refused, (a,), a)

        s = Sub([1.0])
        log(type(double(s, b=2)), double(t.ones(1)))
        refused.__module__ = "mine"
        log.attempt(refused, t.ones(1).as_subclass(Sub))


def test_one_hop_may_be_skipped() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        class Logged(t.Tensor):  # type: ignore[misc]
            @classmethod
            def __torch_function__(
                cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                log(func.__name__)
                return t.overrides.redispatch_function(func, types, args, kwargs or {})

        def scaled(a: Any, b: Any) -> Any:
            if t.overrides.has_torch_function((a, b)):
                return t.overrides.handle_torch_function(scaled, (a, b), a, b)
            return a * b

        x, y = Logged(t.tensor([3.0])), Logged(t.tensor([4.0]))
        with t._C.DisableTorchFunction():
            log(t.overrides.has_torch_function((x,)), t._C._is_torch_function_enabled())
        log(type(scaled(x, y)).__name__, t._C._is_torch_function_enabled())

        class Plain:
            def __torch_function__(self, *args: Any) -> Any:
                return 5

        log(t.overrides.handle_torch_function(scaled, (Plain(),), 1, 2))


def test_dispatch_below_functions_is_refused() -> None:
    dispatch = leafax.utils._python_dispatch  # type: ignore[attr-defined]

    class Mode(dispatch.TorchDispatchMode):  # type: ignore[name-defined, misc]
        pass

    with pytest.raises(NotImplementedError, match="Mode: leafax has no __torch_dispatch__"), Mode():
        pass
    assert dispatch._get_current_dispatch_mode() is None
    assert not dispatch.is_traceable_wrapper_subclass(leafax.ones(1))
    assert not torch.utils._python_dispatch.is_traceable_wrapper_subclass(torch.ones(1))


def test_modes_nest() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        class Mode(t.overrides.TorchFunctionMode):  # type: ignore[misc]
            def __init__(self, name: str) -> None:
                self.name = name

            def __torch_function__(
                self, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                log(self.name, func.__name__)
                return func(*args, **(kwargs or {}))

        class Fails(Mode):
            def __torch_function__(self, *args: Any) -> Any:
                raise ValueError("no")

        with Mode("out"), t.overrides.BaseTorchFunctionMode(), Mode("in") as m:
            x = t.ones(2)
            log(t.overrides._get_current_function_mode() is m)
            (x * x).sum()
        with log.catch(), Fails("f"):
            t.ones(2)
        log(t.overrides._get_current_function_mode_stack(), t.ones(1))


def test_device_context() -> None:
    before = leafax.overrides._get_current_function_mode_stack()
    with leafax.overrides.BaseTorchFunctionMode(), DeviceContext("cpu"), DeviceContext("cpu"):
        made = leafax.zeros(2), leafax.tensor([1]), leafax.arange(3)
        assert len(leafax.overrides._get_current_function_mode_stack()) == 2
    assert all(x.device == leafax.device("cpu") for x in made)
    assert leafax.overrides._get_current_function_mode_stack() == before == []


def test_tensors_without_data_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="need __torch_dispatch__, which leafax does not"):
        leafax.Tensor._make_wrapper_subclass(leafax.Tensor, (2, 3))  # type: ignore[attr-defined]


def test_lists_of_functions() -> None:
    ours, theirs = leafax.overrides, torch.overrides
    names = {ours.resolve_name(f) for fs in ours.get_overridable_functions().values() for f in fs}
    wanted = {
        theirs.resolve_name(f) for fs in theirs.get_overridable_functions().values() for f in fs
    }
    known = {n for n in wanted if n and has(leafax, n.removeprefix("torch."))}
    missing = {n for n in known - names if not n.endswith("__get__")}
    assert len(known & names) > 900
    assert len(missing) < 40, sorted(missing)
    assert leafax.Tensor.as_subclass in ours.get_ignored_functions()  # type: ignore[attr-defined]
    assert leafax.add not in ours.get_ignored_functions()  # type: ignore[attr-defined]
    assert ours.is_tensor_method_or_property(leafax.Tensor.add)  # type: ignore[attr-defined]
    assert ours.get_testing_overrides()[leafax.add](1, 2) == -1  # type: ignore[attr-defined]


def has(lib: Any, name: str) -> bool:
    for part in name.split("."):
        lib = getattr(lib, part, None)
    return lib is not None


CALLED_FIRST = ["leafax.ones(1) + Foreign()", "leafax.nn.Linear(2, 2)(Foreign())"]


@pytest.mark.parametrize("call", CALLED_FIRST)
def test_plain_programs_pay_nothing(call: str) -> None:
    program = (
        "import leafax, leafax.nn as nn\n"
        "code = leafax.add.__code__\n"
        "m = nn.Linear(2, 2)\n"
        "m(leafax.ones(2)).sum().backward()\n"
        "class Sub(leafax.Tensor): pass\n"
        "class P(nn.Parameter): pass\n"
        "P(leafax.ones(2)) * 2\n"
        "assert leafax.add.__code__ is code\n"
        "class Foreign:\n"
        "  __torch_function__ = classmethod(lambda *args: 'asked')\n"
        "assert CALL == 'asked'\n"
        "assert leafax.add.__code__ is not code\n"
        "import inspect\n"
        "told = str(inspect.signature(leafax.special.polygamma))\n"
        "assert told.startswith(\"(n: 'int', input: \"), told\n"
    )
    subprocess.run([sys.executable, "-c", program.replace("CALL", call)], check=True)
