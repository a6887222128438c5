"""Examples of PyTorch's documentation where leafax once did otherwise."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
import pytest
from helpers.sameness import Log, same

import leafax


def numpy_functions(torch: Any) -> Any:
    """The Functions of notes/extending.func: NumPy sorts, a rule says how a batch."""

    class Sort(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, dim: int) -> Any:
            array = x.numpy()
            order = np.argsort(array, axis=dim)
            back = np.argsort(order, axis=dim)
            found = np.take_along_axis(array, order, axis=dim)
            return torch.tensor(found), torch.tensor(order), torch.tensor(back)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            _, order, back = output
            ctx.mark_non_differentiable(order, back)
            ctx.save_for_backward(order, back)
            ctx.dim = inputs[1]

        @staticmethod
        def backward(ctx: Any, grad: Any, _0: Any, _1: Any) -> Any:
            order, back = ctx.saved_tensors
            return Take.apply(grad, back, order, ctx.dim), None

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any, dim: int) -> Any:
            x = x.movedim(in_dims[0], 0)
            return Sort.apply(x, (dim % (x.dim() - 1)) + 1), (0, 0, 0)

    class Take(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, order: Any, back: Any, dim: int) -> Any:
            return torch.tensor(np.take_along_axis(x.numpy(), order.numpy(), dim))

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs[1:3])
            ctx.dim = inputs[3]

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            order, back = ctx.saved_tensors
            return Take.apply(grad, back, order, ctx.dim), None, None, None

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any, order: Any, back: Any, dim: int) -> Any:
            x, order, back = [
                t.expand(info.batch_size, *t.shape) if d is None else t.movedim(d, 0)
                for t, d in zip((x, order, back), in_dims[:3], strict=True)
            ]
            return Take.apply(x, order, back, (dim % (x.dim() - 1)) + 1), 0

    return lambda x: Sort.apply(x, -1)[0]


MAPPED: dict[str, Any] = {
    "alone": lambda t, sort, x: t.vmap(sort)(x),
    "after ops": lambda t, sort, x: t.vmap(lambda x: sort(x.exp() * 2) + x)(x),
    "of what was written to": lambda t, sort, x: t.vmap(lambda x: sort(x.clone().mul_(-1)))(x),
    "nested": lambda t, sort, x: t.vmap(t.vmap(lambda x: sort(x * 2)))(t.stack([x, -x])),
    "gradients": lambda t, sort, x: t.vmap(t.func.grad(lambda x: sort(x)[1].sin()))(x),
    "jacrev": lambda t, sort, x: t.func.jacrev(sort)(x),
    "hessian": lambda t, sort, x: t.func.jacrev(t.func.jacrev(lambda x: sort(x)[0, 1].exp()))(x),
}


@pytest.mark.parametrize("how", MAPPED)
def test_functions_that_leave_torch_are_mapped_by_their_rule(how: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([[2.0, -1.0, 0.5], [0.1, 0.3, 0.2]])
        log.gradients(MAPPED[how](torch, numpy_functions(torch), x).contiguous() + 0)


def test_generators_of_threads_that_load_data() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        log(torch.random.thread_safe_generator(), torch.thread_safe_generator())
        log(torch.rand(2, generator=torch.thread_safe_generator()).shape)


@pytest.mark.filterwarnings("ignore:An output with one or more elements")
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64", "int64"])
def test_ldexp_by_integers(kind: str) -> None:
    """Numbers keep their dtype, and are scaled though the power of two alone would overflow."""

    # PyTorch's gradient by negative integers is 0, and that by large ones wraps around.
    @same
    def program(torch: Any, log: Log) -> Any:
        dtype = getattr(torch, kind)
        x = torch.tensor([1.5, 0.0, 3.0, -1.0]).to(dtype)

        def show(*found: Any) -> None:
            for t in found:
                log(str(t.dtype), t.double())

        for other in (torch.tensor([1, 2, 0, 3]), torch.tensor([1, 0, 2, 1], dtype=torch.uint8)):
            show(torch.ldexp(x, other), x.ldexp(other[0]), x[0].ldexp(other))
            with log.catch():
                show(x.clone().ldexp_(other))
            with log.catch():
                show(torch.ldexp(x, other > 1))
        if dtype.is_floating_point:
            tiny, huge = torch.finfo(dtype).tiny, torch.finfo(dtype).max
            n = 12 if kind == "float16" else 200
            far = torch.tensor([n, -n, 2**32 + 1, -(2**40)])
            show(torch.tensor([tiny, huge, 1, 2]).to(dtype).ldexp(far))
            x.requires_grad_()
            y = x.ldexp(torch.tensor([1, 2, 0, 3]))
            log(y.grad_fn.name(), y.grad_fn._saved_other)
            show(y, torch.autograd.grad(y.sum(), x)[0])


def test_ldexp_warns_where_it_resizes() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            n = torch.tensor([1, 2])
            torch.ldexp(torch.ones(1), n), torch.ones(2, 1).ldexp(n)
            torch.ldexp(torch.ones(2), n), torch.ldexp(torch.ones(1), n.float())
            torch.ldexp(torch.ones(1), n, out=torch.empty(0)), torch.ldexp(n[:1], n)
        log([str(w.message).partition(" (Triggered")[0] for w in told])


def test_the_gradient_of_ldexp_by_negative_integers_is_true() -> None:
    """PyTorch's gradient is 0, because it raises 2 to integer powers; ours is the true one."""
    x = leafax.ones(2, requires_grad=True)
    x.ldexp(leafax.tensor([-1, -3])).sum().backward()
    assert x.grad.tolist() == [0.5, 0.125]


def lies(t: Any) -> Any:
    return tuple(t.shape), t.stride(), t.storage_offset(), t._is_view()


@pytest.mark.parametrize("name", ["unique", "unique_consecutive"])
@pytest.mark.parametrize("tracked", [False, True])
def test_distinct_slices_lie_one_after_the_other(name: str, tracked: bool) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = (torch.arange(24.0).view(2, 3, 4) % 3).requires_grad_(tracked)
        for dim in (0, 1, 2, -1):
            for t in (x, x.transpose(0, 2)):
                found = getattr(torch, name)(t, dim=dim)
                log(lies(found), found)


def test_places_of_flat_positions_are_views() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        for index in (torch.tensor(4), torch.arange(6).view(2, 3).t(), torch.zeros(0).long()):
            for shape in ((3, 2), (10,), [2, 3, 4], 7, ()):
                for place in torch.unravel_index(index.int(), shape):
                    log(place, lies(place))


PLACES: list[Any] = [
    None, "cpu", {"cuda:0": "cpu"}, {"cpu": "cpu"}, lambda storage, place: storage,
    lambda storage, place: None,
]  # fmt: skip


@pytest.mark.parametrize("where", PLACES, ids=range(len(PLACES)))
def test_where_tensors_are_put_by_load(where: Any) -> None:
    asked: list[Any] = []

    def noting(storage: Any, place: str) -> Any:
        asked.append((storage.nbytes(), place))
        return where(storage, place)

    @same
    def program(torch: Any, log: Log) -> Any:
        asked.clear()
        file = io.BytesIO()
        torch.save({"a": torch.arange(3), "b": torch.ones(2, requires_grad=True)}, file)
        file.seek(0)
        found = torch.load(file, map_location=noting if callable(where) else where)
        log(found, str(found["a"].device), sorted(asked))


def test_what_concerns_pickle_is_taken() -> None:
    file = io.BytesIO()
    leafax.save(leafax.ones(2), file, pickle_protocol=4, _use_new_zipfile_serialization=False)
    file.seek(0)
    assert leafax.load(file, "cpu", None, encoding="ascii", weights_only=False).tolist() == [1, 1]


def test_padded_sequences() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        pad, unpad = torch.nn.utils.rnn.pad_sequence, torch.nn.utils.rnn.unpad_sequence
        a, b = torch.arange(12.0).view(4, 3), torch.ones(2, 3, requires_grad=True)
        for options in ({}, {"batch_first": True, "padding_value": -1.0}, {"padding_side": "left"}):
            for parts in ([a, b], (b.detach().int(), a), (x for x in (b, a, b))):
                padded = pad(parts, **options)
                log(padded, padded.stride(), padded._version)
        first = pad([a, b], batch_first=True)
        log(unpad(first, torch.tensor([4, 2]), batch_first=True), first.sum().backward(), b.grad)
        turned = pad([a, a[:1]])
        log(unpad(turned, torch.tensor([4, 1])), turned.shape, turned.stride())
        for wrong in (3, [], [1, 2], [torch.ones(2), torch.ones(3, 2)], [torch.ones(2, 3), a.t()]):
            log.attempt(pad, wrong)
        log.attempt(pad, [a], padding_side="x")
        log.attempt(pad, [a], padding_value="x")


@pytest.mark.parametrize("place", ["cuda", "cpu"])
def test_older_names_of_amp(place: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        amp = getattr(torch, place).amp
        x = torch.ones(2, 2, requires_grad=True)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for args in ((), (False,), (True, torch.bfloat16)):
                with amp.autocast(*args) as scope:
                    log(str((x @ x).dtype), isinstance(scope, torch.autocast) or scope is None)
            log(str(amp.autocast()(lambda: x @ x)().dtype))
            scaler = amp.GradScaler(init_scale=4.0)
            log(scaler.is_enabled(), isinstance(scaler, torch.amp.GradScaler), scaler.get_scale())
        log([(w.category.__name__, str(w.message)) for w in told])


@pytest.mark.filterwarnings("ignore")
def test_older_names_of_what_custom_functions_need() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        class Twice(torch.autograd.Function):
            @staticmethod
            @torch.cuda.amp.custom_fwd(cast_inputs=torch.float32)
            def forward(ctx: Any, x: Any) -> Any:
                return x * 2

            @staticmethod
            @torch.cuda.amp.custom_bwd
            def backward(ctx: Any, grad: Any) -> Any:
                return grad * 2

        x = torch.ones(2, requires_grad=True)
        log(Twice.apply(x), torch.autograd.grad(Twice.apply(x).sum(), x)[0])


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("kind", [None, "float64"])
def test_hooks_see_of_softmax_its_result_alone(name: str, kind: str | None) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([[1.0, 0.5], [0.2, -1.0]], requires_grad=True)
        storage: list[Any] = []

        def pack(t: Any) -> int:
            storage.append(t)
            return len(storage) - 1

        for scale in (1, 2):
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda i: storage[i] * scale):  # noqa: B023
                y = getattr(x.exp(), name)(-1, dtype=kind and getattr(torch, kind))
            found = torch.autograd.grad((y * y).sum(), x, create_graph=True)[0]
            log(len(storage), found, torch.autograd.grad(found.sum(), x)[0])
