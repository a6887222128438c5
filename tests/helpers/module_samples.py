"""PyTorch's sample database of modules, run for torch and for leafax.

`LEAFAX_MODULE_SAMPLES=all` runs every sample of every entry; else a few that differ in their forms.
"""

from __future__ import annotations

import copy
import dataclasses
import os
import pickle
import random
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import leafax

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_modules import ModuleErrorEnum, module_db

ENTRIES: dict[str, Any] = {entry.name.removeprefix("nn."): entry for entry in module_db}
LIMIT = None if os.environ.get("LEAFAX_MODULE_SAMPLES") == "all" else 3
TOLERANCE = {torch.float64: 1e-9, torch.float32: 2e-5, torch.complex128: 1e-9}
MAX_NUMEL = 3000


# -- which samples


def inputs(entry: Any, dtype: torch.dtype, training: bool) -> list[Any]:
    """All samples of an entry, the same ones each time."""
    seed()
    made = entry.module_inputs_func(
        entry, device="cpu", dtype=dtype, requires_grad=True, training=training
    )
    return [sample for sample in made if sample.forward_input is not None]


def seed() -> None:
    torch.manual_seed(0)
    leafax.manual_seed(0)
    np.random.seed(0)
    random.seed(0)


def chosen(entry: Any, dtype: torch.dtype, training: bool, limit: int | None) -> list[int]:
    """Numbers of the samples to run: small ones of different forms first."""
    kinds: dict[Any, int] = {}
    for number, sample in enumerate(inputs(entry, dtype, training)):
        parts = [(f.args, f.kwargs) for f in (sample.constructor_input, sample.forward_input)]
        if limit is None:
            kinds[number] = number
        elif _numel(parts[1]) <= MAX_NUMEL:
            kinds.setdefault(_kind(parts), number)
    numbers = list(kinds.values())
    if limit is None or len(numbers) <= limit:
        return numbers
    return [numbers[i * (len(numbers) - 1) // max(limit - 1, 1)] for i in range(limit)]


def _numel(x: Any) -> int:
    if isinstance(x, torch.Tensor):
        return x.numel()
    if isinstance(x, dict):
        return sum(map(_numel, x.values()))
    return sum(map(_numel, x)) if isinstance(x, (tuple, list)) else 0


def _kind(x: Any) -> Any:
    if isinstance(x, torch.Tensor):
        return ("t", x.dim(), x.dtype)
    if isinstance(x, dict):
        return tuple((k, _kind(v)) for k, v in sorted(x.items()))
    if isinstance(x, (tuple, list)):
        return (type(x), *map(_kind, x))
    return x if isinstance(x, (bool, str)) else type(x)


def flags(entry: Any) -> tuple[bool, ...]:
    return (True, False) if entry.train_and_eval_differ else (True,)


def cases(names: Any) -> list[Any]:
    """Parameters for a test of `(name, dtype, training, number)`."""
    return [
        pytest.param(name, dtype, training, number, id="-".join(_words(*case)))
        for case in _cases(names)
        for name, dtype, training, number in [case]
    ]


def _words(name: str, dtype: torch.dtype, training: bool, number: int) -> Iterator[str]:
    yield name
    yield str(dtype).removeprefix("torch.")
    yield "train" if training else "eval"
    yield str(number)


def _cases(names: Any) -> Iterator[tuple[str, torch.dtype, bool, int]]:
    for name in names:
        entry = ENTRIES[name]
        for training in flags(entry):
            limit = LIMIT if training or LIMIT is None else 1
            for number in chosen(entry, torch.float64, training, limit):
                yield name, torch.float64, training, number
        yield name, torch.float32, True, chosen(entry, torch.float32, True, 1)[0]


# -- torch's things as leafax's


def to_leafax(x: Any, leaves: dict[int, Any] | None = None) -> Any:
    """An argument with leafax's tensors, dtypes, functions and modules in it.

    Args:
      leaves: takes the tensors that require grad, by the `id` of torch's.
    """
    if isinstance(x, torch.Tensor):
        values = leafax.from_numpy(np.array(x.detach().numpy()))
        if isinstance(x, torch.nn.Parameter):
            return leafax.nn.Parameter(values, x.requires_grad)
        made = values.requires_grad_(x.requires_grad)
        if x.requires_grad and leaves is not None:
            return leaves.setdefault(id(x), made)
        return made
    if isinstance(x, dict):
        return type(x)((k, to_leafax(v, leaves)) for k, v in x.items())
    if isinstance(x, (tuple, list)):
        return type(x)(to_leafax(y, leaves) for y in x)
    if isinstance(x, torch.nn.Module):
        home = leafax.nn.modules.linear if "Quantizable" in type(x).__name__ else leafax.nn
        cls = getattr(home, type(x).__name__)
        made = cls.__new__(cls)
        made.__setstate__({k: to_leafax(v) for k, v in x.__dict__.items()})
        return made
    if isinstance(x, torch.dtype):
        return getattr(leafax, str(x).removeprefix("torch."))
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        cls = getattr(leafax.nn, type(x).__name__)
        return cls(**{f.name: getattr(x, f.name) for f in dataclasses.fields(x) if f.init})
    if callable(x) and not isinstance(x, type):
        return getattr(leafax.nn.functional, x.__name__)
    return x


def leaves_of(x: Any) -> list[Any]:
    """The tensors of torch in an argument that require grad, in the order of `to_leafax`."""
    if isinstance(x, torch.Tensor):
        return [x] if x.requires_grad else []
    if isinstance(x, dict):
        return [t for v in x.values() for t in leaves_of(v)]
    return [t for y in x for t in leaves_of(y)] if isinstance(x, (tuple, list)) else []


def _copied(x: Any) -> Any:
    """An argument whose tensors, which need not be leaves, are others."""
    if isinstance(x, torch.Tensor):
        return x.detach().clone()
    if isinstance(x, dict):
        return type(x)((k, _copied(v)) for k, v in x.items())
    return type(x)(_copied(y) for y in x) if isinstance(x, (tuple, list)) else copy.deepcopy(x)


def _tensors(x: Any) -> list[Any]:
    """The tensors, of either library, in what a module returned."""
    if isinstance(x, dict):
        return [t for v in x.values() for t in _tensors(v)]
    if isinstance(x, (tuple, list)):
        return [t for y in x for t in _tensors(y)]
    return [x] if hasattr(x, "requires_grad") else []


# -- comparisons


def same(ours: Any, theirs: torch.Tensor | None, tolerance: float | None, what: str) -> None:
    """Equal kinds, shapes, dtypes and (nearly) values; None as tolerance: any values."""
    if ours is None and (theirs is None or not theirs.numel()):
        return  # no elements have no gradient either way
    assert (ours is None) == (theirs is None), f"{what}: {ours} for {theirs}"
    assert theirs is not None
    assert tuple(ours.shape) == tuple(theirs.shape), what
    assert str(ours.dtype) == str(theirs.dtype), what
    if tolerance is None:
        return
    a, b = ours.detach().numpy(), theirs.detach().numpy(force=True)
    scale = max(1.0, float(np.nanmax(np.abs(b), initial=0.0, where=np.isfinite(b))))
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale, err_msg=what)


def same_attributes(ours: Any, theirs: Any) -> None:
    """Equal public attributes, constants, versions and representations, of children too."""
    assert repr(ours) == repr(theirs)
    assert [n for n, _ in ours.named_modules()] == [n for n, _ in theirs.named_modules()]
    for our, their in zip(ours.modules(), theirs.modules(), strict=True):
        assert our._version == their._version
        constants = getattr(their, "__constants__", None)
        assert getattr(our, "__constants__", None) == constants, type(our)
        for name, value in their.__dict__.items():
            if not name.startswith("_") or name == "_reversed_padding_repeated_twice":
                assert hasattr(our, name), name
                if isinstance(value, (int, float, str, tuple, list, type(None))):
                    assert getattr(our, name) == value, name
                    assert type(getattr(our, name)) is type(value), name


def same_state(ours: Any, theirs: Any, tolerance: float | None, what: str) -> None:
    """Equal state dicts, with their order and their versions."""
    a, b = ours.state_dict(), theirs.state_dict()
    assert list(a) == list(b), what
    assert a._metadata == b._metadata, what
    for name in b:
        same(a[name], b[name], tolerance, f"{what}: {name}")


def numpy_state(module: Any) -> dict[str, np.ndarray]:
    return {k: np.array(v.detach().numpy()) for k, v in module.state_dict().items()}


# -- runs


def pair(entry: Any, sample: Any, dtype: torch.dtype, training: bool) -> tuple[Any, Any]:
    """The module of torch and ours with its state, which went through a copy and a pickle."""
    made = sample.constructor_input
    theirs = entry.module_cls(*made.args, **made.kwargs).to(dtype).train(training)
    args, kwargs = to_leafax((made.args, made.kwargs))
    cls = getattr(leafax.nn, entry.module_cls.__name__)
    ours = cls(*args, **kwargs).to(to_leafax(dtype)).train(training)
    same_attributes(ours, theirs)
    if entry.is_lazy:  # shapes come from a state, of a module that saw the input
        with torch.no_grad():
            args, kwargs = copy.deepcopy((sample.forward_input.args, sample.forward_input.kwargs))
            known = entry.module_cls(*made.args, **made.kwargs).to(dtype).train(training)
            known(*args, **kwargs)
        theirs.load_state_dict(known.state_dict())
        same_attributes(ours, theirs)
    else:
        same_state(ours, theirs, None, "new")
        other = pickle.loads(pickle.dumps(copy.deepcopy(ours)))
        ids = {id(t) for t in ours.parameters()}
        assert not ids & {id(t) for t in other.parameters()}
        same_state(other, theirs, None, "copied")
        ours = other
    state = {k: leafax.from_numpy(v) for k, v in numpy_state(theirs).items()}
    loaded = ours.load_state_dict(state)
    assert repr(loaded) == "<All keys matched successfully>"
    return theirs, ours


class Run:
    """The results of a module: outputs, first and second gradients."""

    def __init__(self, library: Any, module: Any, args: Any, kwargs: Any, leaves: list[Any]):
        self.library, self.module = library, module
        if getattr(module, "inplace", False):  # writes to what is no leaf
            args = [t.clone() if hasattr(t, "requires_grad") else t for t in args]
        self.outputs = _tensors(module(*args, **kwargs))
        self.sources = leaves + [p for p in module.parameters() if p.requires_grad]

    def gradients(self, outputs: list[Any], again: bool) -> list[Any]:
        """Gradients by the sources, for cotangents that are the same in both libraries."""
        wanted = [t for t in outputs if t is not None and t.requires_grad]
        if not wanted or not self.sources:
            return []
        rng = np.random.default_rng(0)
        cotangents = []
        for t in wanted:
            values = rng.standard_normal(tuple(t.shape))
            dtype = str(t.dtype).removeprefix("torch.")
            cotangents.append(self.library.from_numpy(np.array(values.astype(dtype))))
        return list(
            self.library.autograd.grad(
                wanted, self.sources, cotangents, create_graph=again, allow_unused=True
            )
        )


def _varies(theirs: Any, args: Any, kwargs: Any) -> bool:
    """Tell whether the module draws: another seed gives other outputs."""
    results = []
    for number in (1, 2):
        torch.manual_seed(number)
        with torch.no_grad():
            given = _copied((args, kwargs))
            results.append(_tensors(copy.deepcopy(theirs)(*given[0], **given[1])))
    return any(not torch.equal(a, b) for a, b in zip(*results, strict=True) if not a.isnan().any())


def check(name: str, dtype: torch.dtype, training: bool, number: int) -> None:
    """Compare one sample of an entry with torch; raises where they differ."""
    entry = ENTRIES[name]
    sample = inputs(entry, dtype, training)[number]
    theirs, ours = pair(entry, sample, dtype, training)
    args, kwargs = sample.forward_input.args, sample.forward_input.kwargs
    leaves: dict[int, Any] = {}
    our_args, our_kwargs = to_leafax((args, kwargs), leaves)
    their_leaves = list({id(t): t for t in leaves_of((args, kwargs))}.values())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        varies = _varies(theirs, args, kwargs)
        tolerance = None if varies else TOLERANCE[dtype]
        reference = Run(torch, theirs, args, kwargs, their_leaves)
        run = Run(leafax, ours, our_args, our_kwargs, list(leaves.values()))
        assert type(ours).__name__ == type(theirs).__name__
        again = entry.supports_gradgrad and dtype == torch.float64
        firsts = [r.gradients(r.outputs, again) for r in (reference, run)]
        seconds: list[list[Any]] = [[], []]
        if again:
            try:
                seconds[0] = reference.gradients(firsts[0], False)
            except RuntimeError:  # torch has no second derivative here
                pass
            else:
                if seconds[0]:  # in chunks torch's first derivatives are constants
                    seconds[1] = run.gradients(firsts[1], False)
    for kind, (a, b) in {
        "output": (run.outputs, reference.outputs),
        "gradient": (firsts[1], firsts[0]),
        "second gradient": (seconds[1], seconds[0]),
    }.items():
        assert len(a) == len(b), kind
        for i, (mine, other) in enumerate(zip(a, b, strict=True)):
            if kind == "second gradient" and mine is None and other is not None and not other.any():
                continue  # a layer norm of no elements, whose gradients PyTorch says are 0
            same(mine, other, tolerance, f"{kind} {i}")
            if kind == "output":
                assert mine.requires_grad == other.requires_grad
    same_state(ours, theirs, tolerance, "after")
    same_attributes(ours, theirs)
    fresh = copy.deepcopy(theirs)
    fresh.load_state_dict({k: torch.from_numpy(v) for k, v in numpy_state(ours).items()})
    same_state(ours, fresh, 0.0, "given to torch")


def error_cases(names: Any) -> list[Any]:
    """Parameters for a test of `(name, number)`: calls that torch refuses."""
    found = []
    for name in names:
        if ENTRIES[name].module_error_inputs_func is not None:
            count = len(_errors(name))
            step = 1 if LIMIT is None else max(1, count // 10)
            found += [pytest.param(name, i, id=f"{name}-{i}") for i in range(0, count, step)]
    return found


def _errors(name: str) -> list[Any]:
    seed()
    entry = ENTRIES[name]
    return list(
        entry.module_error_inputs_func(
            entry, device="cpu", dtype=torch.float64, requires_grad=False, training=True
        )
    )


def refuse(library: Any, cls: Any, error: Any, convert: Any) -> Exception | None:
    """The exception of a call that is to fail."""
    sample = error.module_error_input
    made, given = sample.constructor_input, sample.forward_input
    args, kwargs = convert((made.args, made.kwargs))
    module: Any = None
    try:
        module = cls(*args, **kwargs)
        if error.error_on == ModuleErrorEnum.FORWARD_ERROR:
            module = module.to(library.float64)
            args, kwargs = convert((given.args, given.kwargs))
            kept = module(*args, **kwargs)
            leafax.synchronize()  # what only the data can tell
            del kept
    except Exception as raised:
        return raised
    return None


def check_error(name: str, number: int) -> None:
    """Compare the exception of one refused call with torch's."""
    error = _errors(name)[number]
    cls = ENTRIES[name].module_cls
    theirs = refuse(torch, cls, error, lambda x: x)
    ours = refuse(leafax, getattr(leafax.nn, cls.__name__), error, to_leafax)
    assert type(ours) is type(theirs), (ours, theirs)
    assert str(ours).splitlines()[:1] == str(theirs).splitlines()[:1]
