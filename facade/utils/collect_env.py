"""PyTorch's `torch.utils.collect_env`: versions, as reports of errors give them."""

from __future__ import annotations

import importlib.metadata
import platform
import sys

import jax
import numpy

__all__ = ["get_pretty_env_info", "main"]


def get_pretty_env_info() -> str:
    """Return the versions of Python, leafax, JAX and NumPy, the system and JAX's devices."""
    lines = {
        "leafax version": importlib.metadata.version("leafax"),
        "JAX version": jax.__version__,
        "NumPy version": numpy.__version__,
        "Python version": sys.version.replace("\n", " "),
        "Python platform": platform.platform(),
        "Devices": ", ".join(map(str, jax.local_devices())),
    }
    return "\n".join(f"{name}: {value}" for name, value in lines.items())


def main() -> None:
    """Print the versions."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
