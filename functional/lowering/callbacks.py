"""Host callbacks inside a program, whose errors must reach the user as they were raised.

XLA runs a program behind the caller's back, and a callback that raises there poisons all results:
JAX tells of it in words of its own, when somebody waits for one of them. So programs with callbacks
are found before they run; they donate nothing, are waited for, and remember what was raised.
"""

from __future__ import annotations

from typing import Any

from jax.extend.core import ClosedJaxpr, Jaxpr

_CALLBACKS = frozenset({"pure_callback", "io_callback", "debug_callback"})


class Watched:
    """A callback that remembers what it raised.

    Args:
      callback: the callable that JAX calls on the host.
      raised: takes the exceptions.
    """

    def __init__(self, callback: Any, raised: list[BaseException]) -> None:
        self._callback, self._raised = callback, raised

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._callback(*args, **kwargs)
        except BaseException as error:
            self._raised.append(error)
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._callback, name)


def watch_callbacks(program: ClosedJaxpr, raised: list[BaseException]) -> ClosedJaxpr:
    """Watch the host callbacks of a program; return it as it is if it has none.

    Args:
      raised: takes what the callbacks raise.
    """
    jaxpr = _watched(program.jaxpr, raised)
    return program if jaxpr is program.jaxpr else ClosedJaxpr(jaxpr, program.consts)


def _watched(jaxpr: Jaxpr, raised: list[BaseException]) -> Jaxpr:
    eqns = []
    for eqn in jaxpr.eqns:
        params = {name: _in_param(value, raised) for name, value in eqn.params.items()}
        if eqn.primitive.name in _CALLBACKS:
            params["callback"] = Watched(params["callback"], raised)
        if any(params[name] is not value for name, value in eqn.params.items()):
            eqn = eqn.replace(params=params)
        eqns.append(eqn)
    same = all(map(lambda a, b: a is b, eqns, jaxpr.eqns))
    return jaxpr if same else jaxpr.replace(eqns=eqns)


def _in_param(value: Any, raised: list[BaseException]) -> Any:
    """Watch the callbacks in the programs of an equation's parameter."""
    if isinstance(value, ClosedJaxpr):
        return watch_callbacks(value, raised)
    if isinstance(value, Jaxpr):
        return _watched(value, raised)
    if isinstance(value, (tuple, list)):
        found = [_in_param(x, raised) for x in value]
        if any(map(lambda a, b: a is not b, found, value)):
            return type(value)(found)
    return value
