"""`func.functional_call`: a module called with other tensors in place of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from leafax.functional.program.op import TABLE

from .._core.handle import Handle
from .._dispatch.record import apply

_NONE = object()


def functional_call(
    module: Any, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: Any = None, *,
    tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """Call `module` with the given parameters and buffers.

    Args:
      module: a model of `leafax.adapters`, or anything with PyTorch's `named_parameters()` and
        `named_buffers()` whose tensors are attributes along their dotted paths.
      parameter_and_buffer_dicts: tensors by dotted path, or a sequence of such dicts without a
        path in common; what the call writes to a buffer by attribute is put back into the dict.
      args: a tuple of positional arguments, or the only one.
      kwargs: a dict of keyword arguments.
      tie_weights: a value for one path is taken for all paths of the same tensor.
      strict: raise for a path that is missing or that the module does not have.

    Raises:
      ValueError: for dicts that do not go together.
      RuntimeError: with `strict`.

    >>> import leafax
    >>> class Scale:
    ...     def __init__(self): self.factor = leafax.tensor(2.0, requires_grad=True)
    ...     def named_parameters(self): return [("factor", self.factor)]
    ...     def named_buffers(self): return []
    ...     def __call__(self, x): return self.factor * x
    >>> leafax.func.functional_call(Scale(), {"factor": leafax.tensor(3.0)}, leafax.tensor(2.0))
    tensor(6.)
    """
    tensors = _merged(parameter_and_buffer_dicts)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    kwargs = {} if kwargs is None else kwargs
    own: dict[str, Any] = {}
    if tie_weights or strict:  # else nobody asks: modules may hold one another in a circle
        own = dict(_named(module, "named_parameters")) | dict(_named(module, "named_buffers"))
    given = _tied(own, tensors) if tie_weights else dict(tensors)
    if strict:
        _check(module, own, given)
    if hasattr(module, "functional_call"):  # the models of leafax.adapters
        return module.functional_call(given, *args, **kwargs)
    with _swapped(module, given, tensors):
        return module(*args, **kwargs)


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Stack the parameters and the buffers of models of one class, for `vmap`.

    Args:
      models: anything with PyTorch's `named_parameters()` and `named_buffers()`.

    Returns:
      Two dicts of tensors by dotted path, of shape `(len(models), *shape)`; what requires grad is
      a new leaf.

    Raises:
      RuntimeError: for no model, for different classes or modes, and for a parameter that
        requires grad in some of them only.

    >>> import leafax
    >>> class Scale:
    ...     def __init__(self, x): self.factor = leafax.tensor(x, requires_grad=True)
    ...     def named_parameters(self): return [("factor", self.factor)]
    ...     def named_buffers(self): return []
    >>> leafax.func.stack_module_state([Scale(1.0), Scale(2.0)])
    ({'factor': tensor([1., 2.], requires_grad=True)}, {})
    """
    check_ensemble(models, "stack_module_state")
    found = []
    for method in ("named_parameters", "named_buffers"):
        own = [dict(getattr(m, method)()) for m in models]
        found.append({name: _stacked(name, [tensors[name] for tensors in own]) for name in own[0]})
    return found[0], found[1]


def check_ensemble(models: Sequence[Any], what: str) -> None:
    """Raise PyTorch's errors about models whose tensors are stacked.

    Args:
      what: the function that stacks them.
    """
    if len(models) == 0:
        raise RuntimeError(f"{what}: Expected at least one model, got 0.")
    if len({bool(getattr(m, "training", True)) for m in models}) > 1:
        raise RuntimeError(f"{what}: Expected all models to have the same training/eval mode.")
    if len({type(m) for m in models}) > 1:
        raise RuntimeError(f"{what}: Expected all models to be of the same class.")


def _stacked(name: str, tensors: list[Any]) -> Any:
    if len({t.requires_grad for t in tensors}) > 1:
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    out = apply(TABLE["stack"], tuple(tensors))
    return out.detach().requires_grad_() if tensors[0].requires_grad else out


def _merged(dicts: Any) -> dict[str, Any]:
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, Sequence):
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(dicts)}"
        )
    if not all(isinstance(d, dict) for d in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    counts: dict[str, int] = {}
    for d in dicts:
        for name in d:
            counts[name] = counts.get(name, 0) + 1
    repeated = [name for name, n in counts.items() if n > 1]
    if repeated:
        raise ValueError(
            f"{repeated} appeared in multiple dictionaries; behavior of functional call is "
            "ambiguous"
        )
    return {name: t for d in dicts for name, t in d.items()}


def _named(module: Any, method: str) -> Any:
    try:
        return getattr(module, method)(remove_duplicate=False)
    except TypeError:
        return getattr(module, method)()


def _tied(own: dict[str, Any], tensors: dict[str, Any]) -> dict[str, Any]:
    """Give the value of one path to all paths of the same tensor."""
    names: dict[int, list[str]] = {}
    for name, t in own.items():
        names.setdefault(id(t), []).append(name)
    made = dict(tensors)
    for group in names.values():
        given = [name for name in group if name in tensors]
        if len(group) == 1 or not given:
            continue
        if len(given) > 1 and len({id(tensors.get(name)) for name in group}) != 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(group)}, which are tied. "
                "Consider using tie_weights=False"
            )
        made.update(dict.fromkeys(group, tensors[given[0]]))
    return made


def _check(module: Any, own: dict[str, Any], given: dict[str, Any]) -> None:
    lists = {
        "Unexpected": sorted(set(given) - set(own)),
        "Missing": sorted(set(own) - set(given)),
    }
    errors = [
        f"{what} key(s): {', '.join(map(repr, names))}." for what, names in lists.items() if names
    ]
    if errors:
        name = module._get_name() if hasattr(module, "_get_name") else type(module).__name__
        raise RuntimeError(
            "Error(s) in reparametrizing for {}:\n\t{}".format(name, "\n\t".join(errors))
        )


@contextmanager
def _swapped(module: Any, given: dict[str, Any], tensors: dict[str, Any]) -> Iterator[None]:
    before: dict[str, Any] = {}
    try:
        for name, t in given.items():
            before[name] = _swap(module, name, t)
        yield
    finally:
        for name, t in before.items():
            now = _swap(module, name, t)
            if name in tensors and now is not _NONE:
                tensors[name] = now


def _swap(module: Any, path: str, new: Any) -> Any:
    """Put `new` at a dotted path; returns what was there."""
    _check_tensor(new, "")
    if path.endswith(".") or not path:
        raise KeyError('tensor name can\'t be empty string ""')
    *parts, name = path.split(".")
    for part in parts:
        modules = getattr(module, "_modules", None)
        module = modules[part] if modules and part in modules else _get(module, part)
    for places in (getattr(module, "_parameters", None), getattr(module, "_buffers", None)):
        if places is not None and name in places:
            old, places[name] = places[name], new
            if new is _NONE:
                del places[name]
            return old
    old = getattr(module, name, _NONE)
    _check_tensor(old, f"attribute `{name}`: ")
    if new is _NONE:
        delattr(module, name)
    else:
        setattr(module, name, new)
    return old


def _check_tensor(x: Any, what: str) -> None:
    if not (x is None or x is _NONE or isinstance(x, Handle)):
        raise TypeError(f"{what}{x} is not an instance of torch.Tensor")


def _get(module: Any, name: str) -> Any:
    if isinstance(module, (list, tuple)) and name.isdigit():
        return module[int(name)]
    if not hasattr(module, name):
        kind = module._get_name() if hasattr(module, "_get_name") else type(module).__name__
        raise AttributeError(f"{kind} has no attribute `{name}`")
    return getattr(module, name)
