"""A Flax model as a child of an `nn.Module`: its leaf tensors are parameters and buffers there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from leafax import nn

_MEMBERS = ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set")


class FlaxPart(nn.Module):
    """The tensors right below one path of a Flax model, and the parts below it."""

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Any:
        """Set all tensors to what `fn` makes of them; the model keeps its own objects."""
        before = dict(self._buffers)
        super()._apply(fn, recurse)
        for name, old in before.items():
            if self._buffers[name] is not old:
                old.data, self._buffers[name] = self._buffers[name], old
        return self

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any
    ) -> None:
        """Copy, where modules would take other tensors over: the model keeps its own objects."""
        kept = {k: v for k, v in local_metadata.items() if k != "assign_to_params_buffers"}
        super()._load_from_state_dict(state_dict, prefix, kept, *rest)


class FlaxChild(FlaxPart):
    """A Flax model among the children of an `nn.Module`.

    Modules make it when a model is assigned to them. It has the attributes and methods of the
    model (`freeze`, `watch`, `variables`), and those of modules before them.

    Attributes:
      model: the model itself; its tensors are those that the child has.
    """

    model: Any

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.__dict__["model"] = model  # assigned, it would become a child of itself
        self._hold()

    def _hold(self) -> None:
        """Register the model's tensors by the parts of their paths."""
        self.training = self.model.training
        parameters, buffers = self.model._tensors()
        self.__dict__["_places"] = places = []
        for kind, tensors in (("_parameters", parameters), ("_buffers", buffers)):
            for path, t in tensors.items():
                *parts, name = path.split(".")
                node: Any = self
                for part in parts:
                    if part not in node._modules:
                        node._modules[part] = FlaxPart()
                    node = node._modules[part]
                held = getattr(node, kind)
                held[name] = t
                places.append((held, name, t))
                if kind == "_parameters":
                    t._is_param = True

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the model."""
        swap = {id(own): held[name] for held, name, own in self._places if held[name] is not own}
        if swap:
            return self.model._call_on(swap, args, kwargs)
        return self.model(*args, **kwargs)

    def functional_call(self, tensors: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Call the model with other tensors in place of its own, by path."""
        return self.model.functional_call(tensors, *args, **kwargs)

    def train(self, mode: bool = True) -> Any:
        """Switch the model to training, or to evaluation; return this child."""
        super().train(mode)
        self.model.train(mode)
        return self

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Freeze or unfreeze all parameters; return this child."""
        self.model.requires_grad_(requires_grad)
        return self

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("_") or "model" not in self.__dict__:
                raise
        return getattr(self.model, name)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out, for copies, the tensors: the model tells which there are."""
        return {k: v for k, v in super().__getstate__().items() if k not in (*_MEMBERS, "_places")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        nn.Module.__init__(self)
        super().__setstate__(state)
        self._hold()

    def _get_name(self) -> str:
        return self.model._name()  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return repr(self.model)
