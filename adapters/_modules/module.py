"""An `nn.Module` as what fine-tuning asks of a model: tensors by path, statistics, classes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from leafax import nn

from .._flax.child import FlaxChild, FlaxPart
from .._inside.watch import Watched
from .._models import stillness
from .._models.freezing import Freezing
from .._models.kernel import Kernel
from .._models.recomputing import Recomputing
from .._models.select import Tensors, parts_within
from .lora import AdaptersOf, kernel_of
from .recomputed import recompute
from .watch import watch


class ModuleView(Freezing, Recomputing):
    """Tensors, classes and modes of a module, read off it anew each time.

    A Flax model among its children answers for what lies below it.
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module

    def _flax(self) -> dict[str, Any]:
        """Return Flax models in the module, by what paths of theirs begin with."""
        found = self.module.named_modules()
        return {_before(path): m.model for path, m in found if isinstance(m, FlaxChild)}

    def _own(self) -> list[tuple[str, nn.Module]]:
        """Return the modules that are no parts of a Flax model."""
        return [(p, m) for p, m in self.module.named_modules() if not isinstance(m, FlaxPart)]

    def _shared_out(self, names: Iterable[str]) -> tuple[set[str], list[tuple[Any, set[str]]]]:
        """Split paths into our own, and for each Flax model those that lie in it, from there."""
        own, flax = set(names), []
        for before, model in self._flax().items():
            below = {name for name in own if name.startswith(before)}
            own -= below
            flax.append((model, {name[len(before) :] for name in below}))
        return own, flax

    # ------------------------------------------------------------ what `Freezing` asks

    def _tensors(self) -> tuple[Tensors, Tensors]:
        return dict(self.module.named_parameters()), dict(self.module.named_buffers())

    def _statistics(self) -> list[str]:
        known = {name for name, _ in self.module.named_buffers()}
        found = [
            _before(path) + name
            for path, module in self._own()
            if isinstance(module, nn.modules.batchnorm._NormBase)
            for name in module._buffers
            if _before(path) + name in known
        ]
        for before, model in self._flax().items():
            found += [before + name for name in model._statistics()]
        return found

    def _stopped(self) -> set[str]:
        parts = dict(self._own())
        found = set()
        for name in self._statistics():
            held = stillness.stillness(parts.get(_parent(name), self.module))
            if _parent(name) in parts and held is not None and held.statistics:
                found.add(name)
        for before, model in self._flax().items():
            found |= {before + name for name in model._stopped()}
        return found

    def _stop_statistics(self, names: set[str], stop: bool) -> None:
        own, flax = self._shared_out(names)
        parts = dict(self._own())
        for path in {_parent(name) for name in own}:
            stillness.change(parts[path], statistics=stop)
        for model, below in flax:
            model._stop_statistics(below, stop)

    def _quieten(self, names: set[str], stop: bool) -> None:
        own, flax = self._shared_out(names)
        parts = dict(self._own())
        for name in own:
            path, _, last = name.rpartition(".")
            stillness.change(parts[path], parameters=(last, stop))
        for model, below in flax:
            model._quieten(below, stop)
        quiet = parts_within(dict(self.module.named_parameters()), self._quiet())
        for path, module in parts.items():
            steps = path.split(".") if path else []
            inside = any(".".join(steps[:n]) in quiet for n in range(len(steps) + 1))
            if inside or stillness.stillness(module) is not None:
                stillness.change(module, quiet=inside)

    def _quiet(self) -> set[str]:
        found = set()
        for path, module in self._own():
            held = stillness.stillness(module)
            found |= {_before(path) + name for name in held.parameters} if held else set()
        for before, model in self._flax().items():
            found |= {before + name for name in model._quiet()}
        return found

    def _classes(self) -> dict[str, type]:
        found: dict[str, type] = {path: type(module) for path, module in self._own()}
        for before, model in self._flax().items():
            try:
                classes = model._classes()
            except RuntimeError:  # a linen model that was not called yet
                continue
            found |= {(before + path).rstrip("."): kind for path, kind in classes.items()}
        return found

    def _order(self) -> list[str]:
        """Return the order in which parameters are registered, or used in a Flax model."""
        flax = self._flax()
        order: dict[str, None] = {}
        for name, _ in self.module.named_parameters():
            before = next((b for b in flax if name.startswith(b)), None)
            if before is not None and name not in order:
                try:
                    order.update((before + n, None) for n in flax[before]._order())
                except RuntimeError:  # it was not called yet
                    pass
            order[name] = None
        return list(order)

    def _unsettle(self) -> None:
        for model in self._flax().values():
            model._unsettle()

    @property
    def training(self) -> bool:
        return stillness.mode_of(self.module)

    def train(self, mode: bool = True) -> Self:
        self.module.train(mode)
        return self

    def _modes(self) -> dict[str, bool]:
        return {path: stillness.mode_of(m) for path, m in self.module.named_modules()}

    def _set_modes(self, modes: dict[str, bool]) -> None:
        for path, module in self.module.named_modules():
            if isinstance(module, FlaxChild):
                module.train(modes[path])
            elif path in modes:
                stillness.set_mode(module, modes[path])

    def _parts(self) -> list[str]:
        found = [path for path, _ in self._own()]
        for before, model in self._flax().items():
            found += [before.rstrip("."), *[before + path for path in model._parts()]]
        return list(filter(None, found))

    def _recompute(self, paths: set[str]) -> None:
        for path, module in self.module.named_modules():
            if isinstance(module, FlaxChild) or not isinstance(module, FlaxPart):
                recompute(module, path in paths)
        for model, below in self._shared_out(paths)[1]:
            model._recompute(below - {""})

    # ------------------------------------------------------------ what others ask

    def mask(self) -> dict[str, bool]:
        return {name: p.requires_grad for name, p in self.module.named_parameters()}

    def watch(self, *what: Any, grad: bool = True) -> Watched:
        return watch(self.module, what, grad)

    def _adapted_by(self) -> AdaptersOf:
        return AdaptersOf(self.module)

    def _kernel(self, path: str, t: Any, stacked: int) -> Kernel | None:
        for before, model in self._flax().items():
            if path.startswith(before):
                found: Kernel | None = model._kernel(path[len(before) :], t, stacked)
                return found
        parent, _, name = path.rpartition(".")
        return kernel_of(self.module.get_submodule(parent), name, t)


def model_of(model: Any) -> Any:
    """Return what can be frozen, adapted and watched by path: a Flax model, or a module's view.

    Raises:
      TypeError: for anything else.
    """
    if isinstance(model, Freezing):
        return model
    if isinstance(model, FlaxChild):
        return model.model
    if isinstance(model, nn.Module):
        return ModuleView(model)
    raise TypeError(
        f"expected a `leafax.nn.Module` or a model of `leafax.adapters.linen` or `.nnx`, got "
        f"`{type(model).__name__}`"
    )


def _before(path: str) -> str:
    return f"{path}." if path else ""


def _parent(name: str) -> str:
    return name.rpartition(".")[0]
