"""Installed packages match the folders on disk, and imports run one way."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from runpy import run_path

import pytest

from .test_layers import (
    IMPORT_NAMES,
    ROOT,
    SOURCES,
    Statement,
    import_statements,
    module_name,
)

SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]


def packages_on_disk() -> dict[str, str]:
    """Import name -> folder, of every folder that holds Python files."""
    return {module_name(folder): folder for folder in {str(Path(p).parent) for p in SOURCES}}


def test_every_folder_is_a_listed_package() -> None:
    assert set(SETUPTOOLS["packages"]) == set(packages_on_disk())
    folders = {name: folder for folder, name in IMPORT_NAMES.items()}
    assert SETUPTOOLS["package-dir"] == folders | {"build_tools": "build_tools"}


def test_editable_installs_link_folders_by_their_import_names(tmp_path: Path) -> None:
    pytest.importorskip("setuptools.command.editable_wheel")
    editable = run_path(str(ROOT / "build_tools" / "editable.py"))
    for folder in IMPORT_NAMES:
        (tmp_path / folder).mkdir()
    for _ in range(2):  # a second install makes them anew
        assert editable["make_links"](tmp_path)
        for folder, name in IMPORT_NAMES.items():
            seen = tmp_path.joinpath(editable["LINKS"], *name.split("."))
            assert seen.resolve() == tmp_path / folder
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert {"/.editable/", "/facade/functional", "/facade/adapters"} <= set(ignored)


def test_every_package_has_an_init() -> None:
    bare = [f for f in packages_on_disk().values() if not (ROOT / f / "__init__.py").exists()]
    assert not bare, f"{bare} would be namespace packages"


def test_every_data_file_is_listed() -> None:
    listed = {
        (ROOT / packages_on_disk()[package] / name).relative_to(ROOT).as_posix()
        for package, names in SETUPTOOLS["package-data"].items()
        for name in names
    }
    others = {
        path.relative_to(ROOT).as_posix()
        for folder in packages_on_disk().values()
        for path in (ROOT / folder).iterdir()
        if path.is_file() and path.suffix not in (".py", ".pyi")
    }
    assert others == {name for name in listed if "*" not in name}


def imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, int]]:
    """Yield each imported module or name, dotted, and the level of a relative import."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, 0) for alias in node.names)
    else:
        yield from (
            (".".join(filter(None, [node.module, alias.name])), node.level) for alias in node.names
        )


FORBIDDEN = {
    "functional": ("leafax", "flax", "optax", "torch"),
    "facade": ("leafax.adapters", "flax", "torch"),
    "adapters": (),
}


def under(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def wrong_imports(statement: Statement) -> Iterator[str]:
    """Say what is wrong with each import that a file must not have."""
    source = statement.source
    folder = source.split("/")[0]
    for name, level in imported(statement.node):
        if level:
            here = (ROOT / source).parents[level - 1]
            if not here.is_relative_to(ROOT / folder):
                yield f"{source} leaves its folder: {name}"
            elif folder == "facade" and here == ROOT / folder:
                if under(name, "functional") or under(name, "adapters"):
                    yield f"{source}: write `from leafax.{name.split('.')[0]} import ...`"
            continue
        if name.split(".")[0] in IMPORT_NAMES:
            yield f"{source}: {name} is not its import name"
        if any(under(name, package) for package in FORBIDDEN[folder]):
            yield f"{source} must know nothing of {name}"
        if under(name, "leafax"):
            private = [part for part in name.split(".") if part[0] == "_" and part[:2] != "__"]
            if private:
                yield f"{source} reaches into another folder: {name}"


def test_imports_run_one_way() -> None:
    assert not [wrong for s in import_statements() for wrong in wrong_imports(s)]


IMPORT_IS_QUIET = """
import os, sys
import jax

before = dict(jax.config.values), dict(os.environ)
import leafax
late = "_C amp autograd.functional cuda distributed distributions fx nn.attention.flex_attention"
late += " nn.parallel nn.utils.parametrize optim._rules.lbfgs optim.swa_utils serialization sparse"
early = [name for name in late.split() if f"leafax.{name}" in sys.modules]
assert not early, f"import leafax has imported {early}, which few programs need"
import leafax.functional, leafax.adapters
import leafax.autograd, leafax.nn, leafax.optim, leafax.utils
assert (dict(jax.config.values), dict(os.environ)) == before, "a setting has changed"
taken = {"flax", "optax", "torch"} & set(sys.modules)
assert not taken, f"import leafax has imported {sorted(taken)}"
assert not jax._src.xla_bridge._backends, "import leafax has started a JAX backend"
packages = leafax, leafax.autograd, leafax.nn, leafax.nn.attention, leafax.nn.utils, leafax.optim
for package in packages:
    for name in (*dir(package), *getattr(package, "__all__", ())):
        found = getattr(package, name)  # whether it was there or comes now
        assert getattr(package, name) is found and name in vars(package), name
"""


def test_import_takes_no_framework_and_changes_no_setting() -> None:
    run = subprocess.run(
        [sys.executable, "-c", IMPORT_IS_QUIET], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
