"""Compiled calls in files: a server runs them without their Python, and records nothing."""

from __future__ import annotations

import json
import zipfile
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from leafax.functional.lowering.lower import lower

from .._core.handle import Handle
from .._core.tree.trees import tree_flatten, tree_unflatten
from .._runtime.observation import observe
from .._tracing.inputs import from_array
from .capture import COMPILE
from .replay import Made, Replay

_VERSION = 1


def save_replay(replay: Replay, arguments: list[Any], file: Any) -> None:
    """Write a compiled call to a file, with all that it holds as it is now.

    Args:
      arguments: tensors like those of its calls.
      file: a path, or a file that is open for writing bytes.

    Raises:
      TypeError: it returns something else than new tensors, or writes to its arguments.
      RuntimeError: something has changed since it was recorded.
    """
    inputs = replay.inputs(arguments)
    if inputs is None:
        raise RuntimeError("the compiled call is not as it was recorded: call it, then save it")
    if any(not isinstance(found, Made) for found in replay.result):
        raise TypeError("a compiled call is saved if it returns new tensors, and nothing else")
    if any(source.kind == "argument" for source, *_ in replay.written_elsewhere):
        raise TypeError("a compiled call is saved if it does not write to its arguments")
    places = [s.what if s.kind == "argument" else -1 for s in replay.sources]
    held = [k for k, place in enumerate(places) if place < 0]
    updates, run = _updates(replay), lower(replay.plan.program)

    def call(state: list[Any], given: list[Any]) -> Any:
        supply = iter(state)
        taken = [next(supply) if place < 0 else given[place] for place in places]
        outputs = run(*taken)
        after = [outputs[updates[k]] if k in updates else taken[k] for k in held]
        return after, tree_unflatten([outputs[x.place] for x in replay.result], replay.spec)

    with jax.enable_x64(True):
        state = [jnp.asarray(inputs[k]) for k in held]
        given = [jnp.asarray(observe(t, COMPILE)) for t in arguments]
        program = export.export(jax.jit(call))(state, given).serialize()
        arrays = [np.asarray(x) for x in state]
    names = _names(replay)
    about = {
        "version": _VERSION,
        "state": [
            [names[k], a.dtype.name, a.shape] for k, a in zip(held, arrays, strict=True)
        ],
    }  # fmt: skip
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("about.json", json.dumps(about))
        archive.writestr("program", bytes(program))
        for k, array in enumerate(arrays):
            archive.writestr(f"state/{k}", array.tobytes())


def _updates(replay: Replay) -> dict[int, int]:
    """Map inputs to the outputs that they are at the next call."""
    place: dict[Any, int] = {}
    for t, output, *_ in replay.written:
        place["held", id(t)] = output
    for source, output, *_ in replay.written_elsewhere:
        place[source.kind, id(source.what)] = output
    for leaf, made in replay.grads:
        if made is not None:
            place["grad", id(leaf)] = made.place
    for generator, made, _ in replay.drawn:
        place["generator", id(generator)] = made.place
    return {
        k: place[s.kind, id(s.what)]
        for k, s in enumerate(replay.sources) if (s.kind, id(s.what)) in place
    }  # fmt: skip


def _names(replay: Replay) -> list[str]:
    """Name the inputs by where Python has them."""
    leaves = reversed(replay.python.leaves.items())  # of several names the first counts
    paths = {id(t): path for path, t in leaves if isinstance(t, Handle)}
    found = []
    for k, source in enumerate(replay.sources):
        path = paths.get(id(source.what))
        if source.kind == "held" and path is not None:
            found.append(path)
        elif source.kind == "grad" and path is not None:
            found.append(f"{path}.grad")
        else:
            found.append(f"{source.kind} {k}")
    return found


class LoadedCall:
    """A compiled call that was read from a file: a function of tensors, with a state of its own.

    Attributes:
      names: of the state's tensors, by where the Python of the function had them.
    """

    def __init__(self, program: Any, names: list[str], state: list[Any]) -> None:
        self._call = jax.jit(program.call, donate_argnums=0)
        self.names, self._state = names, state

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the call on arguments of the shapes and dtypes that it was saved for.

        Returns:
          what the function returned, in the containers of Python and with tensors in them.
        """
        leaves, _ = tree_flatten((args, kwargs))
        given = [observe(t, COMPILE) for t in leaves if isinstance(t, Handle)]
        with jax.enable_x64(True):
            self._state, result = self._call(self._state, [jnp.asarray(x) for x in given])
        return jax.tree.map(from_array, result)

    def state_dict(self) -> dict[str, Any]:
        """Return copies of the state's tensors, by their names."""
        with jax.enable_x64(True):
            return {
                n: from_array(jnp.array(x)) for n, x in zip(self.names, self._state, strict=True)
            }


def load_compiled(file: Any) -> LoadedCall:
    """Read a compiled call that `save` wrote: no model, no Python of it and no recording is needed.

    Args:
      file: a path, or a file that is open for reading bytes.

    Returns:
      A function of tensors. Parameters, optimizer state and generators are its own, and go on from
      where they were when it was saved.

    Raises:
      ValueError: it is no such file, or one of a later version.

    >>> import io, leafax
    >>> w = leafax.full((2,), 3.0)
    >>> scale = leafax.compile(lambda x: w * x)
    >>> _ = [scale(leafax.ones(2)) for _ in range(3)]
    >>> file = io.BytesIO()
    >>> scale.save(file, leafax.ones(2))
    >>> load_compiled(file)(leafax.ones(2))
    tensor([3., 3.])
    """
    try:
        with zipfile.ZipFile(file) as archive:
            about = json.loads(archive.read("about.json"))
            if about["version"] > _VERSION:
                raise ValueError(
                    f"the file is of version {about['version']}, this leafax reads {_VERSION}"
                )
            program = export.deserialize(bytearray(archive.read("program")))
            data = [archive.read(f"state/{k}") for k in range(len(about["state"]))]
    except (zipfile.BadZipFile, KeyError) as error:
        raise ValueError("this is no file that a compiled call was saved in") from error
    state = []
    with jax.enable_x64(True):
        for given, (_, dtype, shape) in zip(data, about["state"], strict=True):
            state.append(jnp.asarray(np.frombuffer(given, jnp.dtype(dtype)).reshape(shape)))
    return LoadedCall(program, [name for name, *_ in about["state"]], state)
