"""`func.vmap` against torch: arguments, errors, randomness, writes, Functions with rules."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from helpers.sameness import Log, assert_equal, run, same

import leafax


def vmap_of(t: Any, w: Any, x: Any) -> Any:
    """A write into what the inner `vmap` does not map, of what it does."""
    return t.vmap(lambda y: x.pow_(y))(w)


CASES: list[Any] = [
    lambda t, vmap, x, w: vmap(lambda: 1)(),
    lambda t, vmap, x, w: vmap(t.sin, in_dims=None)(x),
    lambda t, vmap, x, w: vmap(t.mul)(x,t.ones(2)),
    lambda t, vmap, x, w: vmap(t.sin, in_dims=[0])(x),
    lambda t, vmap, x, w: vmap(t.sin, in_dims=(0,0))(x),
    lambda t, vmap, x, w: vmap(t.sin, in_dims=({0:0},))(x),
    lambda t, vmap, x, w: vmap(t.sin, in_dims=('a',))(x),
    lambda t, vmap, x, w: vmap(t.sin, in_dims=(3,))(x),
    lambda t, vmap, x, w: vmap(t.sin, in_dims=(0.5,))(x),
    lambda t, vmap, x, w: vmap(lambda x,y: x)(x,3),
    lambda t, vmap, x, w: vmap(lambda x: 3)(x),
    lambda t, vmap, x, w: vmap(lambda x: (x,3))(x),
    lambda t, vmap, x, w: vmap(lambda x: w)(x),
    lambda t, vmap, x, w: vmap(lambda x: x, out_dims=None)(x),
    lambda t, vmap, x, w: vmap(lambda x: w, out_dims=None)(x),
    lambda t, vmap, x, w: vmap(lambda x: (x,w), out_dims=(0,None))(x),
    lambda t, vmap, x, w: vmap(lambda x: x, out_dims=(0,1))(x),
    lambda t, vmap, x, w: vmap(lambda x: (x,x), out_dims=(0,1,2))(x),
    lambda t, vmap, x, w: vmap(lambda x: x, out_dims='a')(x),
    lambda t, vmap, x, w: vmap(lambda x: x, out_dims=(0,))(x),
    lambda t, vmap, x, w: vmap(lambda x: (x,x), out_dims=(0,))(x),
    lambda t, vmap, x, w: vmap(lambda x: (t.rand(2),x)[1])(x),
    lambda t, vmap, x, w: vmap(lambda x: x, out_dims=3)(x),
    lambda t, vmap, x, w: vmap(lambda x: x, out_dims=1)(x),
    lambda t, vmap, x, w: vmap(lambda x: x, out_dims=-1)(x).shape,
    lambda t, vmap, x, w: vmap(lambda x: {'a':x,'b':[x]}, out_dims={'a':1,'b':[0]})(x),
    lambda t, vmap, x, w: vmap(lambda x: x.item())(w),
    lambda t, vmap, x, w: vmap(lambda x: x if x>0 else -x)(w),
    lambda t, vmap, x, w: vmap(lambda x: t.nonzero(x))(x),
    lambda t, vmap, x, w: vmap(lambda x: x[x>0])(x),
    lambda t, vmap, x, w: vmap(lambda x: x.clone().__setitem__(x>0, 0.))(x),
    lambda t, vmap, x, w: vmap(lambda x: x.clone().index_put_((x>0,), t.tensor(1.)))(x),
    lambda t, vmap, x, w: vmap(lambda x: t.zeros(2).index_put_((x>0,), t.tensor(1.)))(x),
    lambda t, vmap, x, w: vmap(lambda x: t.zeros(2).__setitem__(x>0, 1.))(x),
    lambda t, vmap, x, w: vmap(lambda x: float(x))(w),
    lambda t, vmap, x, w: vmap(lambda x: x.numpy())(w),
    lambda t, vmap, x, w: vmap(lambda x: w.add_(x))(x),
    lambda t, vmap, x, w: vmap(lambda x: x.add_(w))(x.clone()),
    lambda t, vmap, x, w: vmap(lambda x: t.zeros(2).add_(x))(x),
    lambda t, vmap, x, w: vmap(lambda x: t.zeros(2).copy_(x))(x),
    lambda t, vmap, x, w: vmap(lambda x: t.add(x,x,out=t.zeros(2)))(x),
    lambda t, vmap, x, w: vmap(lambda x: t.rand(2))(x),
    lambda t, vmap, x, w: vmap(lambda x: t.rand_like(x))(x),
    lambda t, vmap, x, w: vmap(lambda x: t.nn.functional.dropout(x))(x),
    lambda t, vmap, x, w: vmap(lambda x: t.bernoulli(x))(t.ones(3,2)),
    lambda t, vmap, x, w: (vmap(lambda x: t.rand(2), randomness='different')(x).std(0)>0).all(),
    lambda t, vmap, x, w: vmap(lambda x: t.rand(2), randomness='x')(x),
    lambda t, vmap, x, w: vmap(lambda x: x, randomness='x'),
    lambda t, vmap, x, w: vmap(lambda i: w.__setitem__(i, 1.))(t.tensor([[0], [1]])),
    lambda t, vmap, x, w: vmap(lambda i: w.index_put_((i,), w[:1]))(t.tensor([[0], [1]])),
    lambda t, vmap, x, w: vmap(lambda x: w.normal_(), randomness='different')(x.clone()),
    lambda t, vmap, x, w: vmap(lambda x: x*2, chunk_size=2)(x),
    lambda t, vmap, x, w: vmap(lambda x: x*2, chunk_size=0)(x),
    lambda t, vmap, x, w: vmap(lambda x: x*2, chunk_size=-1)(x),
    lambda t, vmap, x, w: vmap(lambda x: x*2, chunk_size='a')(x),
    lambda t, vmap, x, w: vmap(lambda x: x*2, chunk_size=1.5)(x),
    lambda t, vmap, x, w: vmap(vmap(lambda x,y: x*y, in_dims=(0,None)),in_dims=(None,0))(x[0],x[1]),
    lambda t, vmap, x, w: vmap(lambda x: x.sum(), in_dims=-1)(x),
    lambda t, vmap, x, w: vmap(lambda x: x.backward())(w),
    lambda t, vmap, x, w: t.func.grad(lambda x: (x.sum().backward(),x.sum())[1])(w),
    lambda t, vmap, x, w: vmap(lambda x: x.requires_grad_())(x),
    lambda t, vmap, x, w: vmap(lambda x: x.retain_grad())(x),
    lambda t, vmap, x, w: t.func.grad(lambda x: x.requires_grad_().sum())(w),
    lambda t, vmap, x, w: vmap(lambda x: t.tensor([1.])+x)(w),
    lambda t, vmap, x, w: vmap(lambda x: x.is_contiguous())(x),
    lambda t, vmap, x, w: vmap(lambda x: str(x))(x),
    lambda t, vmap, x, w: vmap(t.func.grad(lambda x: (x**3).sum()))(x),
    lambda t, vmap, x, w: vmap(t.sin)(t.zeros(0,2)),
    lambda t, vmap, x, w: vmap(lambda x: w.item()*x)(w),
    lambda t, vmap, x, w: vmap(lambda x: x*2 if w.sum()>0 else x)(w),
    lambda t, vmap, x, w: vmap(lambda x: x.tolist())(x),
    lambda t, vmap, x, w: vmap(partial(t.mul, 2))(x),
    lambda t, vmap, x, w: vmap(partial(t.mul, 2), in_dims="a")(x),
    *[
        lambda t, vmap, x, w, f=f: vmap(lambda x: f(t, x, w), randomness="same")(x)
        for f in (
            # What PyTorch does not map.
            lambda t, x, w: x.data,
            lambda t, x, w: (w.data, x)[1],
            lambda t, x, w: t.func.grad(lambda y: (y.data * y).sum())(x),
            lambda t, x, w: setattr(x, "data", w),
            lambda t, x, w: t.equal(x, w),
            lambda t, x, w: (t.equal(w, w), x)[1],
            lambda t, x, w: t.allclose(w, x),
            lambda t, x, w: x.clone(memory_format=t.channels_last),
            lambda t, x, w: x.contiguous(memory_format=t.channels_last_3d),
            lambda t, x, w: x.is_contiguous(memory_format=t.channels_last),
            lambda t, x, w: t.where(x > 0),
            lambda t, x, w: x.nonzero(),
            lambda t, x, w: w.masked_select(x > 0),
            lambda t, x, w: x.unique(),
            lambda t, x, w: x.unique(dim=0),
            lambda t, x, w: x.unique_consecutive(),
            lambda t, x, w: t.nn.functional.one_hot(x.long()),
            lambda t, x, w: x.data_ptr(),
            lambda t, x, w: x.untyped_storage(),
            lambda t, x, w: __import__("copy").copy(x),
            lambda t, x, w: x.is_pinned(),
            lambda t, x, w: t.randn(2, out=w),
            lambda t, x, w: t.randperm(2, out=w),
            lambda t, x, w: t.normal(w, w, out=w),
            lambda t, x, w: t.bernoulli(w - 1, out=w),
            lambda t, x, w: t.rrelu(w),
            # Random numbers that are to be the same, of parameters that differ.
            lambda t, x, w: t.bernoulli(x / 9),
            lambda t, x, w: t.bernoulli(w / 9, 0.5).sum() * 0,
            lambda t, x, w: t.bernoulli(x, 0.5),
            lambda t, x, w: t.normal(x, 1.0),
            lambda t, x, w: t.normal(w, x),
            lambda t, x, w: t.binomial(x, w * 0 + 0.5),
            lambda t, x, w: t.poisson(x),
            lambda t, x, w: (x + 1).multinomial(1),
            lambda t, x, w: x.bernoulli_(x / 9),
            lambda t, x, w: w.bernoulli_(x / 9),
            lambda t, x, w: x.clone().bernoulli_(0.5) * 0,
            lambda t, x, w: x.clone().normal_() * 0,
            lambda t, x, w: t.rand_like(x) * 0,
            lambda t, x, w: t.vmap(lambda y: w.bernoulli_(y))(x),
            lambda t, x, w: t.vmap(lambda y: w.normal_(), randomness="different")(x),
            lambda t, x, w: t.vmap(lambda y: w.bernoulli_(y), randomness="different")(x),
            # Errors of shapes.
            lambda t, x, w: t.mm(x, x),
            lambda t, x, w: t.mm(w, x),
            lambda t, x, w: t.mm(w, w),
            lambda t, x, w: t.mv(x, w),
            lambda t, x, w: t.bmm(x[None], x),
            lambda t, x, w: t.addmm(x, x, x),
            lambda t, x, w: t.dot(x[None], w),
            lambda t, x, w: x[0].squeeze(1),
            lambda t, x, w: x.squeeze((0, 2)),
            # Writes of something batched into what is not.
            lambda t, x, w: w.add_(x),
            lambda t, x, w: w.sub_(x),
            lambda t, x, w: w.div_(x),
            lambda t, x, w: w.pow_(x),
            lambda t, x, w: w.copy_(x),
            lambda t, x, w: w.fill_(x[0]),
            lambda t, x, w: w.clamp_(x),
            lambda t, x, w: w.clamp_min_(x),
            lambda t, x, w: w.eq_(x),
            lambda t, x, w: w.logical_and_(x),
            lambda t, x, w: w.atan2_(x),
            lambda t, x, w: w.lerp_(x, 0.5),
            lambda t, x, w: w.addcmul_(x, x),
            lambda t, x, w: w.masked_fill_(x > 0, 1.0),
            lambda t, x, w: w.index_add_(0, t.tensor([0, 1]), x),
            lambda t, x, w: w.index_put_((t.tensor([0]),), x[0]),
            lambda t, x, w: w.scatter_(0, t.tensor([0]), x),
            lambda t, x, w: w.__setitem__(0, x[0]),
            lambda t, x, w: vmap_of(t, w, x),
        )
    ],
]  # fmt: skip


def show(log: Log, found: Any) -> None:
    """Note values; whether a result is a view is PyTorch's own affair."""
    if isinstance(found, dict):
        found = tuple(found.values())
    if isinstance(found, (tuple, list)):
        for x in found:
            show(log, x)
    else:
        log.gradients(found)


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_call(case: Any) -> None:
    def program(torch: Any, log: Log) -> Any:
        x = torch.arange(6.0).view(3, 2)
        w = torch.tensor([1.0, 2.0])
        with log.catch():
            show(log, case(torch, torch.func.vmap, x, w))
            log.gradients(x, w)

    theirs = [x for x in run(program, torch) if "performance drop" not in str(x)]
    assert_equal(run(program, leafax), theirs, "vmap")


def test_printing() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        vmap = torch.func.vmap
        x = torch.arange(6.0).view(3, 2)
        w = torch.tensor([1.0, 2.0])

        def f(x: Any, y: Any) -> Any:
            log(str(x), str(w), f"{w}", str(x * 2 + y))
            return x

        vmap(f, in_dims=(0, None))(x, w)


def test_unbatched_values_may_be_looked_at() -> None:
    """And the program is not cut for that."""
    x, w = leafax.arange(3.0) + 0, leafax.ones(2) + 1

    def f(x: Any) -> Any:
        return x * 2 if w.sum() > 0 else x * w[0].item()

    leafax.explain(clear=True)
    y = leafax.func.vmap(f)(x)
    assert not leafax.explain(clear=True)
    assert y.tolist() == [0.0, 2.0, 4.0]


@pytest.mark.parametrize(
    "modes", [("different", "different"), ("same", "different"), ("different", "same")]
)
def test_random_numbers_of_nested_maps(modes: tuple[str, str]) -> None:
    """Each example of each map has numbers of its own, or has not."""
    inner, outer = modes

    def f(x: Any) -> Any:
        return leafax.vmap(lambda y: y + leafax.rand(()), randomness=inner)(x)

    def draw() -> Any:
        return leafax.vmap(f, randomness=outer)(leafax.zeros(2, 3)).tolist()

    found, again = draw(), draw()
    assert found != again
    rows = {tuple(row) for row in found}
    assert len(rows) == (2 if outer == "different" else 1)
    assert len({x for row in rows for x in row}) == len(rows) * (3 if inner == "different" else 1)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        leafax.vmap(f)(leafax.zeros(2, 3))


def test_chunks_draw_the_same_numbers() -> None:
    vmap, x = leafax.func.vmap, leafax.zeros(5, 4)
    for size in (1, 2, 5):
        leafax.manual_seed(0)
        whole = vmap(lambda x: x + leafax.rand(4), randomness="same")(x), leafax.rand(2)
        leafax.manual_seed(0)
        parts = vmap(lambda x: x + leafax.rand(4), randomness="same", chunk_size=size)(x)
        assert (parts == whole[0]).all() and (leafax.rand(2) == whole[1]).all()


def test_random_numbers() -> None:
    """Each example draws by a key of its own; PyTorch draws once for the whole batch."""
    vmap = leafax.func.vmap
    x = leafax.zeros(50, 4)

    def draw(x: Any) -> Any:
        return leafax.rand(4), leafax.rand_like(x), x.normal_()

    a, b, c = vmap(draw, randomness="different")(x)
    for t in (a, b, c):
        assert (t.std(0) > 0.1).all() and (t.std(1) > 0).all()
    a, b, c = vmap(draw, randomness="same")(x)
    for t in (a, b, c):
        assert (t == t[:1]).all() and (t.std(1) > 0).all()
    assert (x == c).all()
    leafax.manual_seed(0)
    one = vmap(draw, randomness="different")(x)[0]
    leafax.manual_seed(0)
    assert (vmap(draw, randomness="different")(x)[0] == one).all()
    inner = vmap(vmap(lambda x: leafax.rand(()), randomness="same"), randomness="different")
    drawn = inner(x)
    assert (drawn == drawn[:, :1]).all() and (drawn[:, 0].std() > 0.1).all()


def test_new_tensors_like_a_batched_one_may_be_written_to() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        def f(x: Any) -> Any:
            a, b = torch.zeros_like(x), x.new_ones(2)
            a[0] = x[1]
            b.mul_(x)
            return a, b, torch.full_like(x, 3.0).masked_fill_(x > 2, 0.0)

        show(log, torch.func.vmap(f)(torch.arange(6.0).view(3, 2)))
        show(log, torch.func.vmap(torch.func.vmap(f))(torch.arange(12.0).view(2, 3, 2)))


@pytest.mark.parametrize("nested", [False, True])
def test_an_index_out_of_range_raises(nested: bool) -> None:
    """As ever: when a value is next observed."""
    w = leafax.arange(4.0)
    f = leafax.func.vmap(lambda i: leafax.gather(w, 0, i))
    index = leafax.tensor([[0, 1], [2, 7]])
    if nested:
        f, index = leafax.func.vmap(f), index[None]
    y = f(index.clamp(max=3))
    assert y.flatten().tolist() == [0.0, 1.0, 2.0, 3.0]
    y = f(index)
    with pytest.raises(RuntimeError, match="index 7 is out of bounds for dimension 0 with size 4"):
        y.tolist()


def test_chunks() -> None:
    """None among `out_dims`, which PyTorch cannot join, is the result of the first chunk."""

    @same
    def program(torch: Any, log: Log) -> Any:
        vmap = torch.func.vmap
        calls = []

        def f(x: Any, y: Any) -> Any:
            calls.append(tuple(x.shape))
            return {"a": x * y, "b": [x.sum()]}

        x = torch.arange(10.0).view(2, 5)
        y = torch.tensor([1.0, 2.0])
        out = vmap(f, in_dims=(1, None), out_dims={"a": 1, "b": [0]}, chunk_size=2)(x, y)
        show(log, out)
        log(calls)


def functions(torch: Any, log: Log) -> dict[str, Any]:
    base = torch.autograd.Function

    class Cube(base):  # type: ignore[misc]
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any) -> Any:
            return x**3, 2 * x

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(inputs[0], output[1])
            ctx.save_for_forward(inputs[0], output[1])
            ctx.k = 3

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            x, _ = ctx.saved_tensors
            return g * ctx.k * x**2 + 2 * h

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            x, _ = ctx.saved_tensors
            return 3 * x**2 * t, 2 * t

    class Mul(base):  # type: ignore[misc]
        @staticmethod
        def forward(x: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            return g * y, g * x

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any, y: Any) -> Any:
            log(tuple(info), in_dims, tuple(x.shape), tuple(y.shape))

            def front(t: Any, d: Any) -> Any:
                return t.expand(info.batch_size, *t.shape) if d is None else t.movedim(d, 0)

            return Mul.apply(front(x, in_dims[0]), front(y, in_dims[1])), 0

    class Gen(base):  # type: ignore[misc]
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any, y: Any, n: Any) -> Any:
            return x * y * n

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            x, y, ctx.n = inputs
            ctx.save_for_backward(x, y)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            needs = ctx.needs_input_grad
            return g * y * ctx.n if needs[0] else None, g * x * ctx.n if needs[1] else None, None

    class Old(base):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    class NoRule(Mul):
        vmap = base.vmap

    class Both(Mul):
        generate_vmap_rule = True

    def wrong(name: str, result: Any) -> Any:
        return type(name, (Mul,), {"vmap": staticmethod(result)})

    return {
        "cube": Cube.apply, "mul": Mul.apply, "gen": Gen.apply, "old": Old.apply,
        "norule": NoRule.apply, "both": Both.apply,
        "list": wrong("List", lambda info, dims, x, y: [x, 0]).apply,
        "three": wrong("Three", lambda info, dims, x, y: (x, 0, 1)).apply,
        "structure": wrong("Structure", lambda info, dims, x, y: (x, (0, 0))).apply,
    }  # fmt: skip


OF_FUNCTIONS: list[Any] = [
    lambda f, F, x, w: F.vmap(f["cube"])(x),
    lambda f, F, x, w: F.vmap(f["mul"])(x, x),
    lambda f, F, x, w: F.vmap(f["mul"], in_dims=(0, None))(x, w),
    lambda f, F, x, w: F.vmap(f["mul"], in_dims=(1, 0))(x, w),
    lambda f, F, x, w: F.vmap(lambda a: f["mul"](a.sin(), w).sum())(x),
    lambda f, F, x, w: F.vmap(lambda a: f["mul"](w, w) + a)(x),
    lambda f, F, x, w: F.vmap(F.grad(lambda a: f["mul"](a, a * w).sum()))(x),
    lambda f, F, x, w: F.vmap(F.grad(lambda a: f["cube"](a)[0].sum()))(x),
    lambda f, F, x, w: F.grad(lambda a: F.vmap(f["cube"])(a)[0].sum())(x),
    lambda f, F, x, w: F.grad(lambda a: F.vmap(lambda b: f["mul"](b, a[0]))(a).sum())(x),
    lambda f, F, x, w: F.grad(lambda a: F.vmap(lambda b: f["gen"](b, a[0], 2))(a).sum())(x),
    lambda f, F, x, w: F.grad(
        lambda a: F.vmap(F.grad(lambda b: f["gen"](b, a[0], 2).sin().sum()))(a).sum()
    )(x),
    lambda f, F, x, w: F.grad(
        lambda a: F.vmap(F.grad(lambda b: f["mul"](b, b * a[0]).sum()))(a).sum()
    )(x),
    lambda f, F, x, w: F.vmap(F.vmap(f["gen"], in_dims=(0, 0, None)), in_dims=(0, None, None))(
        x, w, 2
    ),
    lambda f, F, x, w: F.vmap(F.vmap(f["mul"]))(x, x),
    lambda f, F, x, w: F.jvp(f["cube"], (x,), (x,)),
    lambda f, F, x, w: F.vmap(lambda a: F.jvp(f["cube"], (a,), (a,)))(x),
    lambda f, F, x, w: F.jvp(F.vmap(f["cube"]), (x,), (x,)),
    lambda f, F, x, w: F.jacrev(lambda a: f["cube"](a)[0])(w),
    lambda f, F, x, w: F.jacfwd(lambda a: f["cube"](a)[0])(w),
    lambda f, F, x, w: F.hessian(lambda a: f["cube"](a)[0].sum())(w),
    lambda f, F, x, w: F.grad(F.grad(lambda a: f["cube"](a)[0]))(w[0]),
    lambda f, F, x, w: F.grad(f["old"])(w[0]),
    lambda f, F, x, w: F.vmap(f["old"])(w),
    lambda f, F, x, w: F.jvp(f["old"], (w,), (w,)),
    lambda f, F, x, w: F.jvp(lambda a: f["mul"](a, a), (w,), (w,)),
    lambda f, F, x, w: F.vmap(f["norule"])(x, x),
    lambda f, F, x, w: F.vmap(f["both"])(x, x),
    lambda f, F, x, w: F.vmap(f["list"])(x, x),
    lambda f, F, x, w: F.vmap(f["three"])(x, x),
    lambda f, F, x, w: F.vmap(f["structure"])(x, x),
]


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
@pytest.mark.parametrize("case", OF_FUNCTIONS, ids=range(len(OF_FUNCTIONS)))
def test_functions(case: Any) -> None:
    def program(torch: Any, log: Log) -> Any:
        x = torch.arange(6.0).view(3, 2) + 1
        w = torch.tensor([1.0, 2.0])
        with log.catch():
            show(log, case(functions(torch, log), torch.func, x, w))

    ours, theirs = run(program, leafax), run(program, torch)
    assert_equal([x for x in ours if not _jit(x)], [x for x in theirs if not _jit(x)], "vmap")


def _jit(line: Any) -> bool:
    return isinstance(line, list) and "torch.jit" in str(line)


@pytest.mark.parametrize("name", ["mul", "gen"])
def test_gradients_of_what_a_mapped_function_captures(name: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        f = functions(torch, log)[name]
        x = torch.arange(6.0).view(3, 2) + 1
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        more = () if name == "mul" else (3,)
        torch.func.vmap(lambda a: f(a, w, *more))(x).exp().sum().backward()
        log.gradients(w.grad)


def test_debug_unwrap() -> None:
    for lib in (torch, leafax):
        seen: list[Any] = []

        def f(x: Any, lib: Any = lib, seen: list[Any] = seen) -> Any:
            seen += [lib.func.debug_unwrap(x), lib.func.debug_unwrap(x, recurse=False).shape]
            return x.sin()

        x = lib.ones(2, 3)
        lib.vmap(lib.vmap(f))(x)
        assert seen[0] is x and tuple(seen[1]) == (3,)
        assert lib.func.debug_unwrap(x) is x


def test_anomalies_of_later_examples_are_seen() -> None:
    grad, vmap = leafax.func.grad, leafax.func.vmap
    with leafax.autograd.set_detect_anomaly(True):
        assert vmap(grad(lambda x: x.sqrt()))(leafax.ones(3)).tolist() == [0.5] * 3
        bad = leafax.tensor([1.0, 4.0, -1.0])
        match = "Function 'SqrtBackward0' returned nan values in its 0th output"
        with (
            pytest.warns(UserWarning, match="Error detected in SqrtBackward0"),
            pytest.raises(RuntimeError, match=match),
        ):
            vmap(grad(lambda x: x.sqrt()))(bad)


def test_gradients_that_read_results_somebody_holds() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        kept = []

        def held(x: Any) -> Any:
            kept.append(x.exp())
            return kept[-1].sum()

        x = torch.tensor([[0.75, 0.5]], dtype=torch.float64, requires_grad=True)
        for f in (held, lambda x: (1 / x).sum()):
            for of in (torch.func.grad(f), torch.func.hessian(f)):
                made = torch.func.vmap(of)(x)
                log.gradients(made.detach(), *torch.autograd.grad(made.sum(), x))
