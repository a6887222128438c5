"""What PyTorch's argument parser says of arguments that suit none of several signatures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from .._core.typename import type_name


def complaint(
    lines: Sequence[str], args: tuple[Any, ...], kwargs: dict[str, Any], said: str
) -> str:
    """What PyTorch says of arguments that suit none of these signatures."""
    kwargs = {k: kwargs[k] for k in _hashed(tuple(kwargs))}
    text = f"{said}() received an invalid combination of arguments - "
    count = len(args) + len(kwargs)
    shown = [_shown(x) for x in lines]
    if len(shown) == 1:
        wrong = _incorrect(shown[0], kwargs)
        if wrong:
            return text + "got unrecognized keyword arguments: " + ", ".join(wrong)
        marked = _marked(shown[0], args, kwargs) if len(shown[0].split(", ")) == count else None
        return f"{text}got {marked or _described(args, kwargs)}, but expected ({shown[0]})"
    text += f"got {_described(args, kwargs)}, but expected one of:\n"
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


def _shown(line: str) -> str:
    """A signature as PyTorch prints it."""
    for mark in "!?+":
        line = line.replace(f"{mark} ", " ")
    return line


def _described(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    named = [f"{k}={type_name(a)}" for k, a in kwargs.items()]
    got = ", ".join([*map(type_name, args), *named])
    return f"({got}, )" if kwargs and not args else f"({got})"  # as PyTorch has it


def _last_words(line: str) -> list[tuple[str, str]]:
    """Each part's last word, which PyTorch takes for its name, and what is before it."""
    return [(p.rpartition(" ")[2], p.rpartition(" ")[0]) for p in line.split(", ")]


def _incorrect(line: str, kwargs: dict[str, Any]) -> list[str]:
    parts = _last_words(line)
    names = [name for name, _ in parts[max(len(parts) - len(kwargs), 0) :]]
    return [k for k in kwargs if k not in names]


def _marked(line: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The arguments' types, those that do not suit between exclamation marks."""
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
            inside = ", ".join(map(type_name, x))
            if isinstance(x, tuple):
                inside += "," if len(x) == 1 else ""
                one += f"{type_name(x)} of ({inside})"
            else:
                one += f"list of [{inside}]"
        else:
            one += type_name(x)
        found.append(one if type_name(x) in suits else f"!{one}!")
    return f"({', '.join(found)}{'' if args else ', '})"


def _hashed(names: tuple[str, ...]) -> list[str]:
    """Names in the order in which a hash map of C++ goes through them."""
    found: list[str] = []
    for name in names:
        bucket = _hash(name.encode()) % 13
        at = next((i for i, k in enumerate(found) if _hash(k.encode()) % 13 == bucket), 0)
        found.insert(at, name)
    return found


_WORD = (1 << 64) - 1


@cache
def _hash(text: bytes) -> int:
    """The hash of C++'s strings (MurmurHash64A)."""
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
