"""The engine of autograd does not know what serves PyTorch's introspection, nor do strides."""

import pytest

from .test_layers import SOURCES, Import, imports

ORDERS = {
    "facade/_autograd": (
        "extensions", "graph", "forward_mode", "engine", "memo", "formulas", "data_writes", "saved",
        "saved_hooks", "backward_arguments", "backward",
    ),
    "facade/_rules": ("strides", "kernel_strides"),
}  # fmt: skip


def place(file: str, root: str) -> int:
    """Return where the part of `root` that a file is in comes in its order, -1 if in none."""
    part = file.removeprefix(root + "/").removesuffix(".py").split("/")[0]
    return ORDERS[root].index(part) if part in ORDERS[root] else -1


@pytest.mark.parametrize("root", ORDERS)
def test_parts_import_from_those_before_them(root: str) -> None:
    def runs_back(an_import: Import) -> bool:
        if not (an_import.source.startswith(root) and an_import.target.startswith(root)):
            return False
        return 0 <= place(an_import.source, root) < place(an_import.target, root)

    found = [f"{i.source} -> {i.target}" for i in imports() if runs_back(i)]
    assert not found
    parts = {place(file, root) for file in SOURCES if file.startswith(root)}
    assert parts >= set(range(len(ORDERS[root])))  # all that the order names are there
