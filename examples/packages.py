"""Files of installed packages that bring weights and data, found without importing them."""

from collections.abc import Callable
from importlib import metadata
from pathlib import Path


def file_of(package: str, chosen: Callable[[str], bool], missing: str) -> Path:
    """Return the first file of `package` whose name is chosen.

    Args:
        package: as `pip` knows it.
        chosen: says of a file's name whether it is the one.
        missing: what to tell where the package is not installed.

    Raises:
        ModuleNotFoundError: the package is not installed.
    """
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        raise ModuleNotFoundError(missing) from None
    return next(Path(str(file.locate())) for file in files if chosen(file.name))
