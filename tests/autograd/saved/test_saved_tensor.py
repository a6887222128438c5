"""`SavedTensor`: what a node stores, seen raw, with its hooks."""

from __future__ import annotations

from typing import Any

from helpers.sameness import Log, same


def _raw(log: Log, saved: Any) -> None:
    log(type(saved).__name__, saved.data, saved.unpack_hook is not None)
    log.attempt(saved.unpack)


def test_what_is_stored() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        a = torch.tensor([2.0, 3.0], requires_grad=True)
        b = a**2
        c = b.exp()
        d = c * a
        _raw(log, b.grad_fn._raw_saved_self)
        _raw(log, c.grad_fn._raw_saved_result)
        _raw(log, d.grad_fn._raw_saved_self)
        log(d.grad_fn._raw_saved_self.data is c, b.grad_fn._raw_saved_self.data is a)
        log(b.grad_fn._raw_saved_self.unpack() is a)
        log.attempt(lambda: d.grad_fn._raw_saved_result)
        saved = d.grad_fn._raw_saved_self
        saved.register_hooks(lambda x: (1, x.detach() * 2), lambda p: p[1] / 2)
        _raw(log, saved)
        log.attempt(saved.register_hooks, lambda x: x, lambda x: x)
        d.sum().backward()
        log(saved.data, saved.unpack_hook)
        log.attempt(saved.unpack)
        log.attempt(saved.register_hooks, lambda x: x, lambda x: x)
        log.gradients(a.grad)


def test_indices() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        a = torch.ones(2, 2, requires_grad=True)
        y = a[:, torch.tensor([0, 1])]
        none, some = y.grad_fn._raw_saved_indices
        _raw(log, none)
        _raw(log, some)
        some.register_hooks(lambda x: x, lambda x: x)
        log.attempt(none.register_hooks, lambda x: x, lambda x: x)
        y.sum().backward()
        log.gradients(a.grad)


def _keeps(torch: Any, *, none: bool = True) -> Any:
    class Keeps(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            if none:
                ctx.save_for_backward(x, None)
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.saved_tensors[0]

    return Keeps


def test_of_functions() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        a = torch.tensor([2.0, 3.0], requires_grad=True)
        y = _keeps(torch).apply(a)
        first, second = y.grad_fn._raw_saved_tensors
        _raw(log, first)
        _raw(log, second)
        log.attempt(second.register_hooks, lambda x: x, lambda x: x)
        for hooks in ((len,), (1, 1), (len, 1)):
            try:
                first.register_hooks(*hooks)
            except TypeError as e:
                log(str(e).split("Invoked")[0])
        first.register_hooks(lambda x: x * 3, lambda x: x)
        log.attempt(first.register_hooks, lambda x: x, lambda x: x)
        log(y.grad_fn.saved_tensors)
        y.sum().backward()
        log.gradients(a.grad)
        log.attempt(lambda: y.grad_fn._raw_saved_tensors)
        log.attempt(lambda: y.grad_fn.saved_tensors)
        empty = _keeps(torch, none=False).apply(a).grad_fn
        log(empty.saved_tensors, empty._raw_saved_tensors)


def test_under_hooks() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        a = torch.tensor([2.0, 3.0], requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(lambda x: (x, 3), lambda p: p[0] * 2):
            y = a * a
            z = _keeps(torch).apply(a)
        saved = y.grad_fn._raw_saved_self
        log(saved.data[0] is a, saved.unpack_hook is not None)
        log.gradients(saved.unpack().detach())
        log.attempt(saved.register_hooks, lambda x: x, lambda x: x)
        log(y.grad_fn._raw_saved_other.data[1])
        first, second = z.grad_fn._raw_saved_tensors
        log(first.data[0] is a, first.unpack_hook is not None, second.data, second.unpack_hook)


def test_made_by_hand() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        module = torch._C._autograd
        make, calls = module._make_saved_tensor, []
        log(torch.autograd.SavedTensor is module.SavedTensor)
        log.attempt(torch.autograd.SavedTensor)
        a = torch.tensor([2.0, 3.0], requires_grad=True)
        for args, kwargs in (((a,), {}), ((3,), {"is_output": False})):
            try:
                make(*args, **kwargs)
            except TypeError as e:
                log(str(e))
        log(make(a, is_output=False).unpack() is a, make(a, False).data is a)
        result = make(a * 2, is_output=True)
        log(result.data.requires_grad, result.unpack_hook)
        b = a * 1
        saved = make(b, is_output=False)
        with torch.no_grad():
            b += 1
        log.attempt(saved.unpack)

        def pack(x: Any) -> Any:
            calls.append("pack")
            return x

        def unpack(x: Any) -> Any:
            calls.append("unpack")
            return x

        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            saved = make(a, is_output=False)
        saved.unpack()
        log(calls, saved.unpack())
        loose = make(a, is_output=False)
        loose.register_hooks(lambda x: x.detach() * 5, lambda x: x)
        log(loose.data, loose.unpack())


def test_whether_hooks_are_enabled() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        enabled = torch._C._autograd._saved_tensors_hooks_is_enabled
        graph = torch.autograd.graph
        log(enabled())
        with graph.disable_saved_tensors_hooks("outer"):
            log(enabled())
            with graph.disable_saved_tensors_hooks("inner"), log.catch():
                graph.saved_tensors_hooks(lambda x: x, lambda x: x).__enter__()
            log(enabled())
        log(enabled(), torch._C.is_grad_enabled())


def test_hooks_that_come_later_see_the_tensor_without_its_history() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        class Saves(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                y = x * 2
                ctx.save_for_backward(x, y)
                return y

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                log(ctx.saved_tensors)
                return g * 2

        def looked_at(x: Any) -> Any:
            log(x, torch.is_grad_enabled())
            return x

        leaf = torch.tensor([1.0, 2.0], requires_grad=True)
        for x in (leaf, leaf + 1):
            for y in (x * x, x.exp(), x[:1] * x):
                for name in ("self", "result"):
                    saved = getattr(y.grad_fn, f"_raw_saved_{name}", None)
                    if saved is not None:
                        saved.register_hooks(looked_at, looked_at)
                        if name == "self":
                            log(y.grad_fn._saved_self)
                (g,) = torch.autograd.grad(y.sum(), x)
                log.gradients(g)
            y = Saves.apply(x)
            for saved in y.grad_fn._raw_saved_tensors:
                saved.register_hooks(looked_at, looked_at)
            log.gradients(*torch.autograd.grad(y.sum(), x))
        with torch.autograd.graph.saved_tensors_hooks(looked_at, looked_at):
            y = leaf * leaf  # these are there when it is saved
        saved = torch._C._autograd._make_saved_tensor(leaf, is_output=False)
        saved.register_hooks(looked_at, looked_at)
        log(saved.unpack())
