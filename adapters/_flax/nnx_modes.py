"""Training and evaluation of nnx modules: the flags that say which of the two it is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Self

from flax import nnx

from .._models.select import parts_within
from . import model
from .nnx_call import Shared, View
from .nnx_edits import FLAGS


class Modes(model.Model):
    """A model that switches the `deterministic` and `use_running_average` of its modules.

    What is stopped (statistics that stand still, dropout of a frozen part) stays off in training;
    `Shared` remembers what the flags were.
    """

    _shared: Shared
    _module: Any

    @abstractmethod
    def _view(self) -> View: ...

    def _flags(self) -> list[tuple[Any, str]]:
        """Return the attributes below this module that tell it whether to train."""
        shared = self._shared
        found = shared.flags.get(self._module)
        if found is None:
            found = shared.flags[self._module] = [
                (module, flag)
                for _, module in nnx.iter_modules(self._module)
                for flag in FLAGS
                if flag in vars(module)
            ]
        return found

    def _known_parts(self) -> list[str]:
        paths = [path for path, _ in nnx.iter_modules(self._module) if path]
        return [".".join(map(str, path[:n])) for path in paths for n in range(1, len(path) + 1)]

    def _tell_untold(self, module: Any) -> None:
        """Make layers train that were not told whether to when they were made."""
        for _, part in nnx.iter_modules(module):
            for flag in FLAGS:
                if vars(part).get(flag, False) is None:
                    setattr(part, flag, False)

    @property
    def training(self) -> bool:
        known = self._shared.modes.get(self._module)
        if known is not None:
            return bool(known)
        held = {"deterministic": self._shared.quiet, "use_running_average": self._shared.still}
        values = [held[flag].get(m, vars(m)[flag]) for m, flag in self._flags()]
        return not values or not all(values)

    def train(self, mode: bool = True) -> Self:
        shared = self._shared
        for _, module in nnx.iter_modules(self._module):
            shared.modes[module] = bool(mode)
        for module, flag in self._flags():
            self._switch(module, flag, not mode)
        shared.tokens.clear()
        return self

    def _switch(self, module: Any, flag: str, off: bool) -> None:
        shared = self._shared
        off = off or (flag == "use_running_average" and module in shared.still)
        off = off or (flag == "deterministic" and module in shared.quiet)
        if vars(module)[flag] is not off:
            setattr(module, flag, off)

    def _statistics(self) -> list[str]:
        view = self._view()
        pairs = zip(view.names, view.kinds, strict=True)
        return [name for name, kind in pairs if issubclass(kind, nnx.BatchStat)]

    def _stopped(self) -> set[str]:
        still = self._shared.still
        owners = self._view().owners
        return {name for name in self._statistics() if owners[name] in still}

    def _stop_statistics(self, names: set[str], stop: bool) -> None:
        shared, owners = self._shared, self._view().owners
        for module in {id(owners[name]): owners[name] for name in names}.values():
            flag = "use_running_average"
            if stop:
                shared.still.setdefault(module, vars(module).get(flag))
                if flag in vars(module):
                    self._switch(module, flag, True)
            elif module in shared.still:
                off, known = shared.still.pop(module), shared.modes.get(module)
                if flag in vars(module):
                    self._switch(module, flag, off if known is None else not known)
        shared.tokens.clear()

    def _quieten(self, names: set[str], stop: bool) -> None:
        parameters, shared = self._tensors()[0], self._shared
        for t in (parameters[name] for name in names):
            if stop:
                shared.quiet_parameters[t] = True
            else:
                shared.quiet_parameters.pop(t, None)
        parts = parts_within(parameters, self._quiet())
        for path, module in nnx.iter_modules(self._module):
            if "deterministic" not in vars(module):
                continue
            steps = [str(step) for step in path]
            above = {".".join(steps[:n]) for n in range(len(steps) + 1)}
            if above & parts:
                shared.quiet.setdefault(module, vars(module)["deterministic"])
                self._switch(module, "deterministic", True)
            elif module in shared.quiet:
                off, known = shared.quiet.pop(module), shared.modes.get(module)
                self._switch(module, "deterministic", off if known is None else not known)
        shared.tokens.clear()

    def _modules(self) -> Iterator[tuple[str, Any]]:
        """Yield this module and those below it, with their dotted paths."""
        for path, module in nnx.iter_modules(self._module):
            yield ".".join(map(str, path)), module

    def _classes(self) -> dict[str, type]:
        return {path: type(module) for path, module in self._modules()}

    def _parts(self) -> list[str]:
        return [path for path in self._classes() if path]

    def _recompute(self, paths: set[str]) -> None:
        for path, module in self._modules():
            self._shared.recomputed.pop(module, None)
            if path in paths:
                self._shared.recomputed[module] = True
        self._shared.again.clear()

    def _recomputed(self) -> frozenset[str]:
        """Return the paths of the modules that backward calls again, seen from this one."""
        chosen, again = self._shared.recomputed, self._shared.again
        if chosen and self._module not in again:
            found = frozenset(path for path, part in self._modules() if part in chosen)
            again[self._module] = found
        return again[self._module] if chosen else frozenset()

    def _quiet(self) -> set[str]:
        held = self._shared.quiet_parameters
        return {name for name, t in self._tensors()[0].items() if t in held}
