"""Functions and methods composed of ops say what PyTorch's parser would of wrong arguments."""

from __future__ import annotations

from typing import Any

from ._arguments import is_known, parsed

# What is called so often that another call on the way would be felt, and asks little.
_BARE = frozenset(
    "where conj real imag detach detach_ fill_ zero_ numel is_complex is_floating_point "
    "is_inference resolve_conj resolve_neg "
    # These have forms of their own.
    "broadcast_tensors cartesian_prod normal_ bernoulli_".split()
)
# Methods of the classes that `Tensor` is made of.
_INHERITED = ("contiguous", "is_contiguous")


def _stands_alone(f: Any) -> bool:
    """Whether a function is none that follows from the op table, which has all this already."""
    return (
        type(f) is type(_stands_alone)
        and not hasattr(f, "__signature__")
        and not hasattr(f, "__wrapped__")
    )


def functions(namespace: dict[str, Any], names: list[str]) -> None:
    """Let the functions of those names in a namespace say what PyTorch's parser would."""
    for name in names:
        f: Any = namespace.get(name)
        if name not in _BARE and _stands_alone(f) and is_known(name):
            namespace[name] = parsed(f, name)


def methods(cls: type) -> None:
    """The same for the methods of a class."""
    inherited = [(name, getattr(cls, name)) for name in _INHERITED]
    for name, f in [*vars(cls).items(), *inherited]:
        known = name if is_known(name) else name.rstrip("_")
        if name[0] != "_" and name not in _BARE and _stands_alone(f) and is_known(known):
            setattr(cls, name, parsed(f, known, method=True))
