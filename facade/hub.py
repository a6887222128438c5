"""PyTorch's `torch.hub`: weights by their address, kept on the disk; models of a local folder."""

from __future__ import annotations

import builtins
import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import warnings
from types import ModuleType, TracebackType
from typing import Any
from urllib.parse import urlparse as urlparse
from urllib.request import Request, urlopen

from ._core.absent.stand_ins import refusal
from .serialization import load as _load

__all__ = [
    "download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url",
    "set_dir",
]  # fmt: skip

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
ENV_TORCH_HOME, ENV_XDG_CACHE_HOME = "TORCH_HOME", "XDG_CACHE_HOME"
DEFAULT_CACHE_DIR = "~/.cache"
READ_DATA_CHUNK = 128 * 1024
_ONLINE = "it would run code from the network: clone the repository, and say source='local'"
_hub_dir: str | None = None


class _QuietBar:
    """Stand for a progress bar where tqdm is not installed."""

    def __init__(self, *args: Any, **options: Any) -> None:
        pass

    def __enter__(self) -> _QuietBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:  # fmt: skip
        pass

    def update(self, n: int) -> None:
        """Show nothing."""


try:
    from tqdm import tqdm as tqdm
except ImportError:
    tqdm = _QuietBar


def _get_torch_home() -> str:
    cache = os.getenv(ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR)
    return os.path.expanduser(os.getenv(ENV_TORCH_HOME, os.path.join(cache, "torch")))


def get_dir() -> str:
    """Return the folder that holds what was downloaded: PyTorch's own, unless it was set."""
    if os.getenv("TORCH_HUB"):
        warnings.warn("TORCH_HUB is deprecated, please use env TORCH_HOME instead", stacklevel=2)
    return os.path.join(_get_torch_home(), "hub") if _hub_dir is None else _hub_dir


def set_dir(d: str | os.PathLike[str]) -> None:
    """Choose the folder that holds what was downloaded."""
    global _hub_dir
    _hub_dir = os.path.expanduser(d)


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Download a file; what breaks off leaves nothing at its place.

    Args:
      url: its address.
      dst: where to put it.
      hash_prefix: what its SHA256 must begin with.
      progress: show a bar, if tqdm is installed.

    Raises:
      RuntimeError: its hash is another one.
    """
    dst = os.path.expanduser(dst)
    sha256 = hashlib.sha256()
    handle, partial = tempfile.mkstemp(".partial", os.path.basename(dst), os.path.dirname(dst))
    try:
        request = Request(url, headers={"User-Agent": "torch.hub"})
        with os.fdopen(handle, "wb") as file, urlopen(request) as answer:
            length = answer.info().get("Content-Length")
            size = None if length is None else int(length)
            with tqdm(
                total=size, disable=not progress, unit="B", unit_scale=True, unit_divisor=1024
            ) as bar:
                while chunk := answer.read(READ_DATA_CHUNK):
                    file.write(chunk)
                    sha256.update(chunk)
                    bar.update(len(chunk))
        digest = sha256.hexdigest()
        if hash_prefix is not None and not digest.startswith(hash_prefix):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest}")')
        os.chmod(partial, 0o666 & ~_umask())  # a temporary file is its owner's alone
        shutil.move(partial, dst)
    finally:
        if os.path.exists(partial):
            os.remove(partial)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def load_state_dict_from_url(
    url: str, model_dir: str | None = None, map_location: Any = None, progress: bool = True,
    check_hash: bool = False, file_name: str | None = None, weights_only: bool = False,
) -> Any:  # fmt: skip
    """Load a file of weights by its address; what was downloaded before is read from the disk.

    Args:
      url: its address.
      model_dir: the folder that keeps it; by default `checkpoints` in that of `get_dir`.
      map_location: where its tensors go, see `load`.
      progress: show a bar while it is downloaded.
      check_hash: its name ends with a part of its SHA256, which must agree.
      file_name: its name in the folder; by default the one of its address.
      weights_only: take tensors alone, see `load`.
    """
    if os.getenv("TORCH_MODEL_ZOO"):
        warnings.warn(
            "TORCH_MODEL_ZOO is deprecated, please use env TORCH_HOME instead", stacklevel=2
        )
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(folder, exist_ok=True)
    name = os.path.basename(urlparse(url).path) if file_name is None else file_name
    cached = os.path.join(folder, name)
    if not os.path.exists(cached):
        sys.stdout.write(f'Downloading: "{url}" to {cached}\n')
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, cached, found[1] if found else None, progress)
    return _load(cached, map_location=map_location, weights_only=weights_only)


def load(
    repo_or_dir: Any, model: str, *args: Any, source: str = "github", trust_repo: Any = "check",
    force_reload: bool = False, verbose: bool = True, skip_validation: bool = False, **kwargs: Any,
) -> Any:  # fmt: skip
    """Call an entry of a local folder's hubconf.py.

    Args:
      repo_or_dir: the folder.
      model: the name of the entry, a function.
      args, kwargs: what it is called with.
      source: "local".
      trust_repo, force_reload, verbose, skip_validation: of repositories on the network.

    Raises:
      NotImplementedError: the repository is on the network.
    """
    return _entry(_hubconf(repo_or_dir, source, "load"), model)(*args, **kwargs)


def list(  # noqa: A001 # PyTorch's name
    github: Any, force_reload: bool = False, skip_validation: bool = False,
    trust_repo: Any = "check", verbose: bool = True, source: str = "local",
) -> builtins.list[str]:  # fmt: skip
    """Return the names of the entries of a local folder's hubconf.py."""
    entries = vars(_hubconf(github, source, "list"))
    return [n for n, entry in entries.items() if callable(entry) and not n.startswith("_")]


def help(  # noqa: A001 # PyTorch's name
    github: Any, model: str, force_reload: bool = False, skip_validation: bool = False,
    trust_repo: Any = "check", source: str = "local",
) -> str | None:  # fmt: skip
    """Return the docstring of an entry of a local folder's hubconf.py."""
    doc: str | None = _entry(_hubconf(github, source, "help"), model).__doc__
    return doc


def _hubconf(folder: Any, source: str, name: str) -> ModuleType:
    if source not in ("github", "local"):
        raise ValueError(
            f'Unknown source: "{source}". Allowed values: "github" | "local".'
        )  # fmt: skip
    if source == "github" or not os.path.isdir(folder):
        raise NotImplementedError(refusal(f"hub.{name} of {folder!r}", _ONLINE))
    folder = os.path.expanduser(folder)
    spec = importlib.util.spec_from_file_location("hubconf.py", os.path.join(folder, "hubconf.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    needed = getattr(module, "dependencies", [])
    missing = [each for each in needed if importlib.util.find_spec(each) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _entry(module: ModuleType, model: str) -> Any:
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    entry = getattr(module, model, None)
    if entry is None or not callable(entry):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return entry
