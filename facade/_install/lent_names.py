"""Names that PyTorch's files import from each other, and that packages import from those files.

`from torch.distributions.multivariate_normal import Distribution` finds what that file of PyTorch
has at hand. leafax's files import other names, so these are lent to them while it stands for torch.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

# By package: the names, and where they are.
_NAMES = {
    "leafax.distributions": {
        "Distribution": "distributions", "Tensor": "", "constraints": "distributions", "torch": "",
    },
    "leafax.nn": {"Tensor": "", "torch": ""},
    "leafax.nn.modules": {
        "F": "nn.functional", "Module": "nn", "Parameter": "nn", "Tensor": "", "init": "nn",
        "torch": "",
    },
    "leafax.optim": {"Optimizer": "optim", "Tensor": "", "torch": ""},
}  # fmt: skip
_lent: list[tuple[ModuleType, str]] = []


def lend_names(module: ModuleType) -> None:
    """Give a file of leafax the names that PyTorch's file has at hand, those that it lacks."""
    names = _NAMES.get(module.__name__.rpartition(".")[0])
    if names is None or hasattr(module, "__path__"):
        return
    for name, home in names.items():
        if name not in vars(module):
            found = import_module(f"leafax.{home}" if home else "leafax")
            setattr(module, name, found if name in ("F", "torch") else getattr(found, name))
            _lent.append((module, name))


def take_names_back() -> None:
    """Take all lent names back."""
    while _lent:
        module, name = _lent.pop()
        delattr(module, name)
