"""Arguments of `linen.Model`: variables and rules checked, tied parameters made one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flax import linen as nn

from .._models.select import check_rule, near


def tie(tensors: list[Any], paths: list[str], tied: Mapping[str, str]) -> set[str]:
    """Put one tensor in the places of those that are tied; the paths of all others."""
    place = {full: i for i, full in enumerate(paths)}
    known = [full.removeprefix("params.") for full in paths if full.startswith("params.")]
    once = set(paths)
    for path, source in tied.items():
        for name in (path, source):
            if f"params.{name}" not in place:
                raise ValueError(
                    f"no parameter `{name}` to tie; the nearest are {near(name, known)}"
                )
        i, j = place[f"params.{path}"], place[f"params.{source}"]
        if tensors[i].shape != tensors[j].shape:
            raise ValueError(
                f"`{path}` has shape {list(tensors[i].shape)}, `{source}` "
                f"{list(tensors[j].shape)}: they cannot be one parameter"
            )
        tensors[i] = tensors[j]
        once.discard(f"params.{path}")
    return once


def checked_rules(rules: Mapping[str, str], variables: Mapping[str, Any]) -> Mapping[str, str]:
    for collection, rule in rules.items():
        if collection not in variables:
            raise ValueError(
                f"no collection `{collection}` to have a rule; there are {sorted(variables)}"
            )
        check_rule(collection, rule)
    return rules


def check(module: Any, variables: Any) -> None:
    if not isinstance(module, nn.Module):
        raise TypeError(
            f"`module` must be a linen module, got `{type(module).__name__}`; for an nnx module "
            f"use `leafax.adapters.nnx.Model`"
        )
    if not isinstance(variables, Mapping) or (variables and "params" not in variables):
        got = list(variables) if isinstance(variables, Mapping) else type(variables).__name__
        raise ValueError(
            f"`variables` must be what `module.init` returns, with the collection `params`; got "
            f"{got}. Wrap bare parameters: `{{'params': params}}`"
        )
