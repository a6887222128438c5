"""Replays compared with plain calls: `leafax.compile(fn, check=True)`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .._core.handle import Handle
from .._core.tree.trees import tree_flatten
from .._runtime.cut import cut
from .._runtime.observation import observe
from .capture import COMPILE
from .python_state import PythonState

# A replay runs the very program that was recorded, but it may be compiled where that ran op by op.
TOLERANCES = {"float16": 1e-2, "bfloat16": 4e-2, "float32": 1e-4, "complex64": 1e-4}
FINE = 1e-9  # of wider dtypes


class Snapshot:
    """All that a call can write to, as it is now.

    Args:
      python: what the function reaches.
      arguments: the tensors among the arguments.
    """

    def __init__(self, python: PythonState, arguments: Iterable[Any]) -> None:
        cut(COMPILE)
        named = [(path, t) for path, t in python.leaves.items() if isinstance(t, Handle)]
        named += [(f"argument {k}", t) for k, t in enumerate(arguments)]
        self._named = {id(t): (name, t) for name, t in reversed(named)}
        self._fields = [
            (t, t._v, t._array, t.__dict__.get("_vc"), list(t.__dict__.get("_vc") or ()))
            for _, t in self._named.values()
        ]
        self._grads = [
            (t, t._grad, None if t._grad is None else (t._grad._v, t._grad._array))
            for _, t in self._named.values()
        ]
        self._places = [(g, g.place()) for g in python.generators]

    def restore(self) -> None:
        """Put everything back as it was."""
        for t, value, array, counter, count in self._fields:
            t._v, t._array, t._trace = value, array, None
            if counter is not None:
                counter[:] = count
        for t, grad, held in self._grads:
            t._grad = grad
            if held is not None:
                grad._v, grad._array = held
                grad._trace = None
        for generator, place in self._places:
            generator.go_back(place)

    def values(self) -> dict[str, Any]:
        """Return copies of what the tensors and their gradients hold now, by name."""
        cut(COMPILE)
        found = {}
        for name, t in self._named.values():
            found[name] = np.array(observe(t, COMPILE))
            if t._grad is not None:
                found[f"{name}.grad"] = np.array(observe(t._grad, COMPILE))
        for k, (generator, _) in enumerate(self._places):
            found[f"generator {k}"] = np.array(observe(generator._state, COMPILE))
        return found


def compare(name: str, replayed: Snapshot, run: Callable[[], Any], again: Callable[[], Any]) -> Any:
    """Run a call twice from the same state, and compare all that it computed.

    Args:
      replayed: the state before.
      run: replays the call.
      again: calls the function plainly.

    Returns:
      what the plain call returned.

    Raises:
      RuntimeError: something differs.
    """
    found = _results(run()) | replayed.values()
    replayed.restore()
    result = again()
    expected = _results(result) | replayed.values()
    for what in {**expected, **found}:
        if what not in found or what not in expected:
            raise RuntimeError(
                f"leafax.compile(check=True): `{name}` leaves `{what}` only where it is "
                f"{'replayed' if what in found else 'called plainly'}"
            )
        a, b = found[what], expected[what]
        tolerance = TOLERANCES.get(a.dtype.name, FINE)
        if a.dtype.name == "bfloat16":
            a, b = a.astype("float32"), b.astype("float32")
        if a.shape != b.shape or not np.allclose(a, b, tolerance, tolerance, equal_nan=True):
            off = float(np.max(np.abs(a - b))) if a.shape == b.shape else float("nan")
            raise RuntimeError(
                f"leafax.compile(check=True): `{what}` differs by up to {off:.3g} where `{name}` "
                f"is replayed: it depends on something that leafax does not see, such as a number "
                f"that Python computes"
            )
    return result


def _results(result: Any) -> dict[str, Any]:
    leaves, _ = tree_flatten(result)
    return {
        f"result {k}": np.array(observe(x, COMPILE))
        for k, x in enumerate(leaves) if isinstance(x, Handle)
    }  # fmt: skip
