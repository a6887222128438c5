"""The words of PyTorch's argument parser about arguments that suit none of several signatures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from .._core.python_data import name_of_type


def describe_mismatch(
    lines: Sequence[str], args: tuple[Any, ...], kwargs: dict[str, Any], name: str
) -> str:
    """Return what PyTorch says of arguments that suit none of the signatures of `name`."""
    kwargs = {k: kwargs[k] for k in _in_hash_order(tuple(kwargs))}
    text = f"{name}() received an invalid combination of arguments - "
    count = len(args) + len(kwargs)
    shown = [_without_marks(x) for x in lines]
    if len(shown) == 1:
        wrong = _incorrect(shown[0], kwargs)
        if wrong:
            return text + "got unrecognized keyword arguments: " + ", ".join(wrong)
        marked = _marked(shown[0], args, kwargs) if len(shown[0].split(", ")) == count else None
        return f"{text}got {marked or _describe(args, kwargs)}, but expected ({shown[0]})"
    text += f"got {_describe(args, kwargs)}, but expected one of:\n"
    for line in shown:
        text += f" * ({line})\n"
        if len(line.split(", ")) == count:
            wrong = _incorrect(line, kwargs)
            text += "      didn't match because some of the "
            if wrong:
                text += f"keywords were incorrect: {', '.join(wrong)}\n"
            else:
                text += f"arguments have invalid types: {_marked(line, args, kwargs)}\n"
    return text


def _without_marks(line: str) -> str:
    """Return a signature as PyTorch prints it."""
    for mark in "!?+":
        line = line.replace(f"{mark} ", " ")
    return line


def _describe(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    named = [f"{k}={name_of_type(a)}" for k, a in kwargs.items()]
    got = ", ".join([*map(name_of_type, args), *named])
    return f"({got}, )" if kwargs and not args else f"({got})"  # as PyTorch has it


def _last_words(line: str) -> list[tuple[str, str]]:
    """Return each part's last word, which PyTorch takes for its name, and what is before it."""
    return [(p.rpartition(" ")[2], p.rpartition(" ")[0]) for p in line.split(", ")]


def _incorrect(line: str, kwargs: dict[str, Any]) -> list[str]:
    parts = _last_words(line)
    names = [name for name, _ in parts[max(len(parts) - len(kwargs), 0) :]]
    return [k for k in kwargs if k not in names]


def _marked(line: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return the arguments' types, those that do not suit between exclamation marks."""
    parts = _last_words(line)
    found = []
    for i in range(len(args) + len(kwargs)):
        name, kind = parts[i]
        if i >= len(args) and name not in kwargs:
            break
        x = args[i] if i < len(args) else kwargs[name]
        suits = {"float": ("float", "int"), "int": ("int",)}.get(kind, (kind,))
        one = f"{name}=" if i >= len(args) else ""
        if isinstance(x, (tuple, list)):
            inside = ", ".join(map(name_of_type, x))
            if isinstance(x, tuple):
                inside += "," if len(x) == 1 else ""
                one += f"{name_of_type(x)} of ({inside})"
            else:
                one += f"list of [{inside}]"
        else:
            one += name_of_type(x)
        found.append(one if name_of_type(x) in suits else f"!{one}!")
    return f"({', '.join(found)}{'' if args else ', '})"


def _in_hash_order(names: tuple[str, ...]) -> list[str]:
    """Return names in the order in which a hash map of C++ goes through them."""
    found: list[str] = []
    for name in names:
        bucket = _hash(name.encode()) % 13
        at = next((i for i, k in enumerate(found) if _hash(k.encode()) % 13 == bucket), 0)
        found.insert(at, name)
    return found


_WORD = (1 << 64) - 1


@cache
def _hash(text: bytes) -> int:
    """Return the hash of C++'s strings (MurmurHash64A)."""
    mul = (0xC6A4A793 << 32) + 0x5BD1E995

    def mixed(v: int) -> int:
        return v ^ (v >> 47)

    h = 0xC70F6907 ^ (len(text) * mul & _WORD)
    whole = len(text) & ~7
    for i in range(0, whole, 8):
        word = int.from_bytes(text[i : i + 8], "little")
        h = (h ^ (mixed(word * mul & _WORD) * mul & _WORD)) * mul & _WORD
    if len(text) & 7:
        h = (h ^ int.from_bytes(text[whole:], "little")) * mul & _WORD
    h = mixed(h) * mul & _WORD
    return mixed(h)
