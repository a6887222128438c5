"""Imports run from the upper layers to the lower ones; folders and files stay small.

Imports for type checkers alone (`if TYPE_CHECKING`) do not run, so they are not counted.

What does not yet keep to that is listed in `tests/layers/exceptions.toml`. The lists may only
shrink: an entry that no longer occurs fails too. `python tests/layers/test_layers.py` takes such
entries out, and adds none.
"""

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
EXCEPTIONS = Path(__file__).parent / "exceptions.toml"
IMPORT_NAMES = {
    "facade": "leafax", "functional": "leafax.functional", "adapters": "leafax.adapters",
}  # fmt: skip

# From the ground up: each imports from those before it. Modules and packages that are not named
# stand above those that are, in any order.
LAYERS = {
    "functional": ("program", "lowering", "execution", "ops", "masks"),
    "facade": (
        "_core", "backends", "_rules", "_signatures", "_tracing", "_storage", "_host", "_dispatch",
        "_autograd", "_runtime", "_ops", "_replay", "_tensor", "types", "version", "__future__",
        "special", "linalg", "fft", "signal", "masked", "func", "autograd", "utils", "nn", "_api",
    ),
    "adapters": ("_models", "_files", "_inside", "_flax", "_modules"),
}  # fmt: skip
REQUIRED = {"jax", "jaxlib", "ml_dtypes", "numpy"}
MOST_FILES = 30  # of Python, in a folder
MOST_LINES = 300  # in a file


class Statement(NamedTuple):
    """An import statement of a file of the library.

    Attributes:
      late: it stands in a function.
      typing: only type checkers read it.
    """

    source: str
    node: ast.Import | ast.ImportFrom
    late: bool
    typing: bool


class Import(NamedTuple):
    """One import of one file of the library from another."""

    source: str
    target: str
    late: bool


def is_own(path: Path) -> bool:
    """Tell a file of the library from one that is seen again through an installation's link."""
    parts = path.relative_to(ROOT).parts
    return parts[:2] not in (("facade", "functional"), ("facade", "adapters"))


SOURCES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in IMPORT_NAMES
    for path in (ROOT / folder).rglob("*.py")
    if is_own(path)
)


def module_name(source: str) -> str:
    top, *rest = source.removesuffix(".py").split("/")
    return ".".join([IMPORT_NAMES[top], *rest]).removesuffix(".__init__")


BY_NAME = {module_name(source): source for source in SOURCES}


@cache
def import_statements() -> tuple[Statement, ...]:
    """Return the import statements of all files; to parse these takes seconds."""
    return tuple(s for source in SOURCES for s in statements_of(source))


def statements_of(source: str) -> Iterator[Statement]:
    tree = ast.parse((ROOT / source).read_text())
    late = {
        node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    typing = {
        node
        for test in ast.walk(tree)
        if isinstance(test, ast.If) and "TYPE_CHECKING" in ast.dump(test.test)
        for node in ast.walk(test)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield Statement(source, node, node in late, node in typing)


@cache
def imports() -> tuple[Import, ...]:
    return tuple(dict.fromkeys(i for s in import_statements() for i in imports_of(s)))


def imports_of(statement: Statement) -> Iterator[Import]:
    source, node, late, typing = statement
    for name in () if typing else imported(node, source):
        target = BY_NAME.get(name)
        if target is not None and target != source:
            yield Import(source, target, late)


def imported(node: ast.Import | ast.ImportFrom, source: str) -> Iterator[str]:
    """Name the modules that a statement imports from, submodules by themselves."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    base = node.module or ""
    if node.level:
        package = module_name(source).split(".")
        if not source.endswith("__init__.py"):
            package.pop()
        package = package[: len(package) - (node.level - 1)]
        base = ".".join([*package, *filter(None, [node.module])])
    for alias in node.names:
        whole = f"{base}.{alias.name}"
        yield whole if whole in BY_NAME else base


def layer(source: str) -> tuple[str, int]:
    """Tell the folder of a file, and its layer there."""
    top, part, *_ = source.removesuffix(".py").split("/")
    layers = LAYERS[top]
    return top, layers.index(part) if part in layers else len(layers)


def is_upward(an_import: Import) -> bool:
    (source, low), (target, high) = layer(an_import.source), layer(an_import.target)
    if source != target:
        return list(LAYERS).index(source) < list(LAYERS).index(target)
    return low < high


def shown(an_import: Import) -> str:
    return f"{an_import.source} -> {an_import.target}"


def circles(pairs: set[tuple[str, str]]) -> list[set[str]]:
    """Return the strongly connected parts of a graph, the largest first (Tarjan, 1972)."""
    after: dict[str, list[str]] = {}
    for source, target in sorted(pairs):
        after.setdefault(source, []).append(target)
        after.setdefault(target, [])
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []
    for root in after:
        if root in number:
            continue
        work = [(root, iter(after[root]))]
        number[root] = low[root] = len(number)
        stack.append(root)
        while work:
            at, following = work[-1]
            for other in following:
                if other not in number:
                    number[other] = low[other] = len(number)
                    stack.append(other)
                    work.append((other, iter(after[other])))
                    break
                if other in stack:
                    low[at] = min(low[at], number[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[at])
                if low[at] == number[at]:
                    start = stack.index(at)
                    found.append(set(stack[start:]))
                    del stack[start:]
    return sorted(found, key=len, reverse=True)


def largest_circle() -> set[str]:
    return circles({(i.source, i.target) for i in imports()})[0]


def long_files() -> dict[str, int]:
    lengths = {source: (ROOT / source).read_text().count("\n") for source in SOURCES}
    return {source: length for source, length in lengths.items() if length > MOST_LINES}


def full_folders() -> dict[str, int]:
    counts: dict[str, int] = {}
    for source in SOURCES:
        folder = source.rpartition("/")[0]
        counts[folder] = counts.get(folder, 0) + 1
    return {folder: count for folder, count in counts.items() if count > MOST_FILES}


def actual() -> dict[str, list[str]]:
    """Return what does not keep to the rules, as the file of exceptions lists it."""
    return {
        "upward": sorted({shown(i) for i in imports() if is_upward(i)}),
        "late": sorted({shown(i) for i in imports() if i.late}),
        "long_files": sorted(long_files()),
        "full_folders": sorted(full_folders()),
    }


def exceptions() -> dict[str, list[str]]:
    found: dict[str, list[str]] = tomllib.loads(EXCEPTIONS.read_text())
    return found


@pytest.mark.parametrize("rule", ["upward", "late", "long_files", "full_folders"])
def test_only_listed_exceptions(rule: str) -> None:
    listed, found = set(exceptions()[rule]), set(actual()[rule])
    assert not found - listed, "not allowed: import downward, at module level, in small files"
    assert not listed - found, "gone: run `python tests/layers/test_layers.py`"


def test_circles_only_shrink() -> None:
    circle = largest_circle()
    assert len(circle) <= int(exceptions()["largest_circle"][0]), sorted(circle)


def test_functions_import_no_required_library() -> None:
    """Inside functions only optional libraries are imported."""
    found = []
    for source, node, late, _ in import_statements():
        if late:
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                names = [] if node.level else [node.module or ""]
            found += [f"{source}: {n}" for n in names if n.split(".")[0] in REQUIRED]
    assert not found


def shrink() -> None:
    """Take entries out of the file that no longer occur."""
    old, now = exceptions(), actual()
    lines = ["# See test_layers.py: these lists may only shrink."]
    for rule, entries in now.items():
        kept = [e for e in entries if e in old.get(rule, [])]
        lines += [f"{rule} = [", *(f'    "{entry}",' for entry in kept), "]"]
    size = min(len(largest_circle()), int(old["largest_circle"][0]))
    lines += [f'largest_circle = ["{size}"]']
    EXCEPTIONS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    shrink()
