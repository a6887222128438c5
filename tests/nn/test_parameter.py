"""`nn.Parameter`, `Buffer`, uninitialized ones and lazy modules, as in PyTorch."""

from __future__ import annotations

import copy
import pickle
from typing import Any

from helpers.module_scripts import Said, agree

from leafax import nn


def test_parameters() -> None:
    def script(t: Any, said: Said) -> None:
        x = t.tensor([1.0, 2.0])
        p = t.nn.Parameter(x)
        said(repr(p), p.requires_grad, p.is_leaf, isinstance(p, t.Tensor), type(p).__name__)
        said(repr(t.nn.Parameter(x.int(), requires_grad=False)), repr(t.nn.Parameter()))
        x.add_(1)
        said(p, type(p + 1).__name__, type(p.data).__name__, type(p.detach()).__name__)
        said(type(t.nn.Parameter(p)).__name__, isinstance(p * 1, t.nn.Parameter), p.grad_fn)
        said.refused(lambda: t.nn.Parameter(x.int()), lambda: p.add_(1))
        with t.no_grad():
            said(t.nn.Parameter(x).requires_grad, p.add_(1) is p, f"{p[0]:.1f}")
        q = copy.deepcopy(p)
        (p * 2).sum().backward()
        said(repr(q), q.grad, q is p, type(copy.deepcopy(p).grad).__name__)
        p.tag = [1]
        for made in (pickle.loads(pickle.dumps(p)), copy.deepcopy([p, p])[1]):
            said(repr(made), made.grad, getattr(made, "tag", None), type(made).__name__)
        y = x.clone().requires_grad_() * 2
        said(t.nn.Parameter(y).is_leaf, t.nn.Parameter(y).grad_fn)

    agree(script)


def test_other_classes() -> None:
    def script(t: Any, said: Said) -> None:
        class Named(t.Tensor):  # type: ignore[misc, name-defined]
            pass

        class Mine(t.nn.Parameter):  # type: ignore[misc, name-defined]
            pass

        p = t.nn.Parameter(t.ones(2).as_subclass(Named))
        m = Mine(t.ones(2))
        said(type(p).__name__, isinstance(p, t.nn.Parameter), p.requires_grad)
        said(type(m).__name__, isinstance(m, t.nn.Parameter), isinstance(p, Mine))
        module = t.nn.Module()
        module.p, module.m = p, m
        said([n for n, _ in module.named_parameters()], type(copy.deepcopy(m)).__name__)
        b = t.nn.Buffer(t.ones(1), persistent=False)
        said(type(b).__name__, isinstance(b, t.nn.Buffer), b.persistent, repr(b))
        said(isinstance(t.ones(1), t.nn.Buffer), repr(t.nn.Buffer()))

    agree(script)


def test_uninitialized() -> None:
    def script(t: Any, said: Said) -> None:
        p, b = t.nn.UninitializedParameter(dtype=t.float64), t.nn.UninitializedBuffer()
        lazy = t.nn.parameter.is_lazy
        said(repr(p), repr(b), lazy(p), lazy(t.ones(1)), p.dtype, b.requires_grad)
        said.refused(lambda: p.shape, lambda: b.shape, lambda: p.share_memory_())
        for call in (lambda: p + 1, lambda: p.sum(), lambda: t.relu(p), lambda: t.ones(2) * p):
            try:
                call()
            except ValueError as error:
                said(str(error).partition("This error")[2])
        said(repr(copy.deepcopy(p)), copy.deepcopy(p).dtype, repr(pickle.loads(pickle.dumps(p))))
        m = t.nn.Module()
        m.p, m.b = p, b
        m.register_buffer("b", b)
        m.float()
        said(p.dtype, m.p is p)
        p.materialize((2, 3))
        b.materialize((1,), dtype=t.int32)
        said(type(p).__name__, p.shape, p.dtype, p.requires_grad, type(b).__name__, b.dtype)
        said(isinstance(p, t.nn.Parameter), lazy(p), p.is_leaf)
        with t.no_grad():
            said(repr(p.fill_(2)))
        p.sum().backward()
        said(p.grad)

    agree(script)


def lazy_layer(t: Any, initializes: bool = True) -> Any:
    class Layer(t.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return x @ self.weight

    class LazyLayer(t.nn.modules.lazy.LazyModuleMixin, Layer):  # type: ignore[misc, name-defined]
        cls_to_become = Layer

        def __init__(self) -> None:
            super().__init__()
            self.weight = t.nn.UninitializedParameter()
            self.register_buffer("count", t.nn.UninitializedBuffer())

        if initializes:

            def initialize_parameters(self, x: Any) -> None:
                if self.has_uninitialized_params():
                    with t.no_grad():
                        self.weight.materialize((x.shape[-1], 2))
                        self.weight.fill_(1)
                        self.count.materialize((1,))
                        self.count.zero_()

    return LazyLayer()


def test_lazy_modules() -> None:
    def script(t: Any, said: Said) -> None:
        m = lazy_layer(t)
        said(m, m.has_uninitialized_params(), list(m.state_dict()), repr(m.state_dict()["weight"]))
        said.refused(lambda: m._replicate_for_data_parallel(), lambda: m.double().share_memory())
        said(m(t.ones(1, 3, dtype=t.float64)), type(m).__name__, m.weight.dtype)
        said(len(m._forward_pre_hooks), len(m._load_state_dict_pre_hooks), "_load_hook" in vars(m))
        state, other = m.state_dict(), lazy_layer(t)
        said(other.load_state_dict(state), other.weight.shape, type(other).__name__)
        third = lazy_layer(t)
        said(third.load_state_dict(lazy_layer(t).state_dict()), repr(third.weight))
        said.refused(lambda: m.load_state_dict(lazy_layer(t).state_dict()))
        said.refused(lambda: lazy_layer(t, initializes=False)(t.ones(1)))
        said(repr(copy.deepcopy(lazy_layer(t).weight)))
        bare = lazy_layer(t)
        bare.initialize_parameters = lambda x: None
        said.refused(lambda: bare(t.ones(1)))

    agree(script)


def test_a_parameter_is_as_its_tensor_where_memory_is_shared() -> None:
    """The tensor that a parameter was made of is let go of once nobody holds it."""
    import leafax

    p = nn.Parameter(leafax.ones(3))
    with leafax.no_grad():
        p.mul_(2)
    leafax.synchronize()
    assert not p._shares and p.tolist() == [2.0, 2.0, 2.0]
