"""PyTorch's `torch.compiler`: marks for `torch.compile`; nothing of them changes what runs here."""

from __future__ import annotations

from typing import Any

from .._api.compile import compile as compile
from .._core.absent.stand_ins import Block
from .._core.absent.stand_ins import do_nothing as cudagraph_mark_step_begin
from .._core.absent.stand_ins import do_nothing as reset
from .._core.absent.stand_ins import do_nothing as set_default_backend
from .._core.absent.stand_ins import leave as allow_in_graph
from .._core.absent.stand_ins import leave as assume_constant_result
from .._core.absent.stand_ins import leave as disable
from .._core.absent.stand_ins import leave as nested_compile_region
from .._core.absent.stand_ins import leave as wrap_numpy
from .._core.trie import local
from . import config as config

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "config",
    "cudagraph_mark_step_begin", "disable",
    "is_compiling", "is_dynamo_compiling", "is_exporting", "list_backends",
    "nested_compile_region", "reset", "set_default_backend", "set_stance", "substitute_in_graph",
    "wrap_numpy",
]  # fmt: skip


def is_compiling() -> bool:
    """Return whether a call is being recorded that `torch.compile` will replay without its Python.

    Code that looks at values can leave that out then, as it does for PyTorch.
    """
    return local.cuts.capture is not None


is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """Return False: nothing exports by running Python."""
    return False


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """Return the names of what compiles: XLA alone."""
    return ["xla"]


def substitute_in_graph(original_fn: Any, **options: Any) -> Any:
    """Return a decorator that returns its function: there is no graph to substitute in."""
    return allow_in_graph()


class set_stance(Block):  # noqa: N801 # PyTorch's name
    """Accept how `torch.compile` should behave, for good or within a block: it stays the same."""

    def __init__(self, stance: str = "default", **options: Any) -> None:
        self.stance = stance


set_enable_guard_collectives = cudagraph_mark_step_begin
