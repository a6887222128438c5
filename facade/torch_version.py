"""PyTorch's `torch.torch_version`: a version that compares with texts and tuples."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

__all__ = ["TorchVersion"]

_VERSION = re.compile(
    r"v?(\d+(?:\.\d+)*)(?:[-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?(\d*))?"
    r"(?:[-_.]?(?:post|rev|r)[-_.]?(\d*))?(?:[-_.]?dev[-_.]?(\d*))?(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?",
    re.IGNORECASE,
)
_STAGES = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2, "preview": 2}
_FINAL = 3


def _key(version: Any) -> tuple[Any, ...] | None:
    """Return what versions are ordered by, None for what is none."""
    if isinstance(version, Iterable) and not isinstance(version, str):
        version = ".".join(map(str, version))
    found = _VERSION.fullmatch(str(version).strip())
    if found is None:
        return None
    numbers, stage, count, post, dev, build = found.groups()
    release = [int(n) for n in numbers.split(".")]
    while release and not release[-1]:  # 2.0 is 2
        release.pop()
    bare_dev = dev is not None and stage is None and post is None
    kind = -1 if bare_dev else _STAGES.get((stage or "").lower(), _FINAL)
    return (
        tuple(release), kind, int(count or 0), -1 if post is None else int(post or 0),
        dev is None, int(dev or 0), _build_key(build),
    )  # fmt: skip


def _build_key(build: str | None) -> tuple[Any, ...]:
    """Return what builds of one version are ordered by: `+cpu` comes after none, before `+1`."""
    parts = re.split(r"[-_.]", build.lower()) if build else []
    return tuple([(1, int(p), "") if p.isdigit() else (0, 0, p) for p in parts])


class TorchVersion(str):
    """A version as a text, which compares by its numbers.

    >>> TorchVersion("2.13.0") > "2.9", TorchVersion("2.13.0+cpu") >= (2, 13)
    (True, True)
    """

    __slots__ = ()

    def _compare(self, other: Any, method: str) -> Any:
        mine, others = _key(str(self)), _key(other)
        if mine is None or others is None:  # as texts, like PyTorch
            return getattr(str, method)(self, other)
        return getattr(tuple, method)(mine, others)

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, "__gt__")

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, "__lt__")

    def __eq__(self, other: Any) -> Any:
        return self._compare(other, "__eq__")

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, "__ge__")

    def __le__(self, other: Any) -> Any:
        return self._compare(other, "__le__")

    __hash__ = str.__hash__
