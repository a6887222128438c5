"""`autograd.Function` under `vmap`: its own rule, or one made of its `forward` and `backward`."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._core.dual_levels import copy_tangents
from .._core.grad_modes import no_grad
from .._core.handle import Handle
from .._core.trie import local
from ..func._level import Level
from ..func._running import running
from ..func._towers import flatten_tangents
from ..func._trees import flatten, spell, unflatten
from ..func._vmap import vmap
from ..func._vmap_dims import spread_dims

_NOTES = "https://pytorch.org/docs/main/notes/extending.func.html"


class VmapInfo(NamedTuple):
    """Tell a Function's `vmap` rule about the running vmap."""

    batch_size: int
    randomness: str


def any_differs(args: tuple[Any, ...]) -> bool:
    """Tell if a tensor among the arguments differs from example to example."""
    return any(isinstance(a, Handle) and running.innermost(a) is not None for a in flatten(args)[0])


def apply_in_vmap(cls: Any, args: tuple[Any, ...], base: Any) -> Any:
    """Call a Function inside a vmap and return examples of its outputs.

    Args:
      base: `Function` itself, which a Function of whole batches is made from.
    """
    level = running.levels[-1]
    leaves, treedef = flatten(args)
    pairs = [_batch(level, a) if isinstance(a, Handle) else (a, None) for a in leaves]
    wholes, dims = [p[0] for p in pairs], [p[1] for p in pairs]
    if all(d is None for d in dims):  # it differs in an outer vmap only
        with running.suspended():
            return cls.apply(*args)
    in_dims, batches = unflatten(treedef, dims), unflatten(treedef, wholes)
    if cls.generate_vmap_rule:
        with running.suspended():
            result = _generated(cls, base, level, in_dims).apply(*batches)
        output, out_dims = result, 0
    else:
        with running.suspended():
            result = cls.vmap(VmapInfo(level.size, level.randomness), in_dims, *batches)
        output, out_dims = _two(result)
    outs, structure = flatten(output)
    places = spread_dims(out_dims, output)
    if places is None:
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, "
            f"out_dims) tuple. Expected out_dims={out_dims} to be compatible with the structure of "
            f"`output`. out_dims has structure {spell(flatten(out_dims)[1])} but output has "
            f"structure {spell(structure)}. For more details, please see {_NOTES}"
        )
    made = [
        o if d is None or not isinstance(o, Handle) else level.take_example(o, _place(o, d))
        for o, d in zip(outs, places, strict=True)
    ]
    return _history(cls, args, unflatten(structure, made))


def _place(out: Any, dim: int) -> int:
    n = out.dim()
    if not dim < n:  # negative ones wrap around
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})"
        )
    return dim % n


def _batch(level: Level, a: Any) -> tuple[Any, int | None]:
    """Return the batch of `a`, also where only a tangent differs from example to example."""
    if level.is_batched(a) or not any(level.is_batched(t) for t in flatten_tangents(a)):
        return level.find_batch(a)
    return level.record_batch(a), 0


def check_mappable(cls: Any, overridden: bool) -> None:
    """Raise PyTorch's error for a Function that cannot be mapped.

    Args:
      overridden: it has a `vmap` rule of its own.
    """
    if cls.generate_vmap_rule and overridden:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and "
            "an overridden vmap staticmethod. Please set generate_vmap_rule=False or delete the "
            "overridden vmap staticmethod to avoid ambiguity. For more details, please see "
            f"{_NOTES}"
        )
    if not cls.generate_vmap_rule and not overridden:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please "
            "override and implement the vmap staticmethod or set generate_vmap_rule=True. For "
            f"more details, please see {_NOTES}"
        )


def _two(result: Any) -> tuple[Any, Any]:
    message = (
        "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree "
        "structure compatible with the output. "
    )
    if not isinstance(result, tuple):
        raise RuntimeError(message + f"Got a {type(result)} instead")
    if len(result) != 2:
        raise RuntimeError(message + f"Got {len(result)} returns instead")
    return result


def _history(cls: Any, args: tuple[Any, ...], output: Any) -> Any:
    """Route gradients inside the vmap through the Function's `backward`."""
    if not local.mode.grad or not any(isinstance(a, Handle) and a._tracked for a in args):  # type: ignore[attr-defined]
        return output
    ctx = cls._backward_cls()
    ctx._begin(args)
    outs = output if isinstance(output, tuple) else (output,)
    plain = tuple(o.detach() if isinstance(o, Handle) else o for o in outs)  # type: ignore[attr-defined]
    with no_grad():
        cls.setup_context(ctx, args, plain if isinstance(output, tuple) else plain[0])
    ctx.check_marks(True, True)
    made = ctx._finish(list(plain), [], True)
    for out, o in zip(made, outs, strict=True):
        if isinstance(out, Handle):
            copy_tangents(o, out)
    return tuple(made) if isinstance(output, tuple) else made[0]


class _Saved:
    """Stand for the context in one example's `backward` or `jvp`."""

    def __init__(self, inner: Any, saved: list[Any]) -> None:
        self.__dict__.update({k: v for k, v in inner.__dict__.items() if not k.startswith("_")})
        self.saved_tensors = tuple(saved)
        self.needs_input_grad = inner.needs_input_grad


def _generated(cls: Any, base: Any, level: Level, in_dims: tuple[Any, ...]) -> Any:
    """Make the Function of whole batches that a Function of examples stands for."""

    def mapped(fn: Any, dims: Any) -> Any:
        return vmap(fn, in_dims=dims, randomness=level.randomness)

    def forward(*batches: Any) -> Any:
        return mapped(cls.forward, in_dims)(*batches)

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        outs = output if isinstance(output, tuple) else (output,)
        box: dict[str, Any] = {}

        def setup(ins: Any, out: Any) -> Any:
            inner = cls._backward_cls()
            inner.needs_input_grad = ctx.needs_input_grad
            cls.setup_context(inner, ins, out if isinstance(output, tuple) else out[0])
            box["inner"] = inner
            groups = [inner.to_save or (), inner.saved_for_forward or ()]
            box["none"] = [[t is None for t in g] for g in groups]
            return tuple([t for g in groups for t in g if t is not None])

        saved = list(mapped(setup, (in_dims, (0,) * len(outs)))(inputs, tuple(outs)))
        n = box["none"][0].count(False)
        ctx.inner, ctx.none = box["inner"], box["none"]
        ctx.save_for_backward(*saved[:n])
        if box["inner"].saved_for_forward is not None:
            ctx.save_for_forward(*saved[n:])
        ctx.set_materialize_grads(box["inner"]._materialize)

    def filled(ctx: Any, group: int, saved: Any) -> list[Any]:
        it = iter(saved)
        return [None if none else next(it) for none in ctx.none[group]]

    def backward(ctx: Any, *grads: Any) -> Any:
        given = [g for g in grads if g is not None]
        box: dict[str, Any] = {}

        def pull(saved: Any, some: Any) -> Any:
            it = iter(some)
            found = cls.backward(
                _Saved(ctx.inner, filled(ctx, 0, saved)),
                *[None if g is None else next(it) for g in grads],
            )
            found = found if isinstance(found, tuple) else (found,)
            box["none"] = [g is None for g in found]
            return tuple([g for g in found if g is not None])

        out = iter(mapped(pull, 0)(tuple(ctx.saved_tensors), tuple(given)))
        results = [None if none else next(out) for none in box["none"]]
        return tuple(
            g if g is None else g.sum(0) if d is None else g.movedim(0, d)
            for g, d in zip(results, in_dims, strict=True)
        )

    def jvp(ctx: Any, *tangents: Any) -> Any:
        given = [t for t in tangents if t is not None]
        dims = tuple(d for t, d in zip(tangents, in_dims, strict=True) if t is not None)
        group = 1 if ctx.inner.saved_for_forward is not None else 0
        box: dict[str, Any] = {}

        def push(saved: Any, some: Any) -> Any:
            it = iter(some)
            found = cls.jvp(
                _Saved(ctx.inner, filled(ctx, group, saved)),
                *[None if t is None else next(it) for t in tangents],
            )
            box["many"] = isinstance(found, tuple)
            found = found if isinstance(found, tuple) else (found,)
            box["none"] = [t is None for t in found]
            return tuple([t for t in found if t is not None])

        out = iter(mapped(push, (0, dims))(tuple(ctx.saved_tensors), tuple(given)))
        results = [None if none else next(out) for none in box["none"]]
        return tuple(results) if box["many"] else results[0]

    members = {
        "forward": staticmethod(forward), "setup_context": staticmethod(setup_context),
        "backward": staticmethod(backward), "jvp": staticmethod(jvp), "generate_vmap_rule": True,
    }  # fmt: skip
    return type(base)(f"Vmapped{cls.__name__}", (base,), members)
