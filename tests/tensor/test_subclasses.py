"""Classes derived from `Tensor`: their constructors give them, and they print by their name."""

from __future__ import annotations

import gc
import weakref
from typing import Any

from helpers.sameness import Log, same

import leafax


def test_constructors() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        class Named(t.Tensor):  # type: ignore[misc]
            word = "w"

        class Made(t.Tensor):  # type: ignore[misc]
            @staticmethod
            def __new__(cls: type, x: Any, *args: Any) -> Any:
                return super().__new__(cls, x)  # type: ignore[misc, call-arg]

        x = t.ones(2)
        made = [Named(), Named([1.0, 2.0]), Named(2, 3), Named(x), Made(x, 1)]
        made.append(t.Tensor.__new__(Named))
        log(*[type(m).__name__ for m in made], made[3].word)
        log(str(Named([1.0, 2.0])), f"{Named(t.tensor(1.0))}", str(Named(t.ones(2).int())))
        x.add_(1)
        with t.no_grad():
            log(made[3].as_subclass(t.Tensor), made[4] + 0 is made[4])


def test_history() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        class Named(t.Tensor):  # type: ignore[misc]
            pass

        x = t.tensor([1.0, 2.0], requires_grad=True)
        y = Named(x * 2)
        log(type(y).__name__, y.requires_grad, type(y.grad_fn).__name__, y.is_leaf)
        y.as_subclass(t.Tensor).sum().backward()
        log(x.grad)
        z = t.zeros(2)
        z.grad = Named([3.0, 4.0])
        log(type(z.grad).__name__)


def test_slots_and_finalizers() -> None:
    gone = []

    class One(leafax.Tensor):
        __slots__ = ("first",)

        def __del__(self) -> None:
            gone.append(type(self).__name__)

    class Two(One):
        __slots__ = ("second",)

    x = leafax.ones(2)
    y = Two(x)
    y.first, y.second = 1, y  # type: ignore[attr-defined]
    x.add_(1)
    assert type(y) is Two and y.tolist() == [2.0, 2.0] and (y + 1).tolist() == [3.0, 3.0]
    gone.clear()  # the sum was of the class, too
    seen = weakref.ref(y)
    del y
    gc.collect()
    assert gone == ["Two"] and seen() is None
    one = One(leafax.ones(2))
    del one
    assert gone == ["Two", "One"]
