"""`python -m leafax`, `leafax.install()` and `leafax.uninstall()`, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import leafax
from leafax._install import command


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder, where no test's module is in the way."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        capture_output=True, text=True, cwd=folder, env=env, check=False,
    )  # fmt: skip


def output_of(code: str, folder: Path) -> str:
    """Run code and return what it prints; it must not fail."""
    done = run("-c", textwrap.dedent(code), folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


MODULES = """
import importlib.metadata, importlib.util, sys
import torch
import torch.nn.functional as F
import torch.utils.data
from torch.nn.modules.batchnorm import _BatchNorm
from torch.functional import einsum
from torch import nn
import leafax, leafax.distributions.kl
from torch.distributions.multivariate_normal import Distribution
from torch.nn.modules.conv import F as from_conv, Module

assert torch is leafax is torch.torch and sys.modules["torch"] is leafax
assert F is leafax.nn.functional is sys.modules["torch.nn.functional"]
assert nn is leafax.nn and torch.utils.data is leafax.utils.data and einsum is leafax.einsum
import torch.distributions.kl  # imported before, by its own name
assert torch.distributions.kl is leafax.distributions.kl
assert Distribution is leafax.distributions.Distribution and from_conv is F
assert Module is leafax.nn.Module
assert leafax.nn.functional.__spec__.name == "leafax.nn.functional"
assert torch.__version__ == "2.13.0" and torch.__version__ >= (2, 9) and torch.version.cuda is None
assert importlib.metadata.version("torch") == "2.13.0"
assert importlib.metadata.distribution("Torch").metadata["Name"] == "torch"
assert "torch" in importlib.metadata.packages_distributions()
assert importlib.metadata.version("leafax") == "0.1.0"
assert importlib.util.find_spec("torch") is not None
assert importlib.util.find_spec("torch.nn.modules.conv") is not None
assert importlib.util.find_spec("torch.no_such_module") is None
assert not [m for m in sys.modules.values() if "torch/_C" in (getattr(m, "__file__", 0) or "")]
print("the same")
"""


def test_installed_modules_are_the_same_objects(tmp_path: Path) -> None:
    code = "import leafax; leafax.install(); leafax.install()\n" + MODULES
    assert output_of(code, tmp_path) == "the same\n"


def test_a_script_runs_with_its_arguments_and_folder(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("from torch import nn\n")
    script = tmp_path / "script.py"
    script.write_text(
        MODULES + "import beside\nprint(sys.argv, __name__, beside.nn is nn)\nsys.exit(3)\n"
    )
    done = run("-m", "leafax", str(script), "--epochs", "2", folder=tmp_path)
    assert done.returncode == 3, done.stderr
    assert done.stdout == f"the same\n[{str(script)!r}, '--epochs', '2'] __main__ True\n"


def test_a_module_and_a_command_run(tmp_path: Path) -> None:
    package = tmp_path / "train"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text("import sys, torch; print(sys.argv[1:], torch.__name__)")
    done = run("-m", "leafax", "-m", "train", "-v", folder=tmp_path)
    assert done.stdout == "['-v'] torch\n", done.stderr
    done = run("-m", "leafax", "-m", "torch.utils.collect_env", folder=tmp_path)
    assert "leafax version: " in done.stdout, done.stderr
    command = "import sys, torch; print(sys.argv, torch.__name__, __name__)"
    done = run("-m", "leafax", "-c", command, "x", folder=tmp_path)
    assert done.stdout == "['-c', 'x'] torch __main__\n", done.stderr


@pytest.mark.parametrize(
    "arguments, said",
    [
        ([], "usage: python -m leafax script.py"),
        (["-m"], "argument expected for the -m option"),
        (["--fast"], "unknown option --fast"),
    ],
)
def test_a_command_line_without_a_program_shows_the_usage(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.run(arguments)
    shown = capsys.readouterr()
    assert ended.value.code == 2 and said in shown.err and not shown.out


def test_what_leafax_lacks_is_said_by_name(tmp_path: Path) -> None:
    code = """
        import leafax; leafax.install()
        for name in ("torch.no_such.deeper", "functorch.compile", "torchgen"):
            try:
                __import__(name)
            except ModuleNotFoundError as error:
                print(error, error.name)
    """
    assert output_of(code, tmp_path) == (
        "No module named 'torch.no_such': leafax, which stands for torch, lacks it torch.no_such\n"
        "No module named 'functorch.compile': leafax, which stands for torch, lacks it "
        "functorch.compile\n"
        "No module named 'torchgen': leafax, which stands for torch, has none torchgen\n"
    )


def test_install_refuses_beside_pytorch(tmp_path: Path) -> None:
    (tmp_path / "torch.py").touch()  # stands for PyTorch, which takes long to import
    done = run("-c", "import torch, leafax; leafax.install()", folder=tmp_path)
    where = tmp_path / "torch.py"
    assert done.returncode == 1 and done.stderr.splitlines()[-1] == (
        "ImportError: leafax cannot stand for torch: PyTorch itself is already imported, from "
        f"{where}. Call leafax.install() before anything imports torch, or run "
        "the script by `python -m leafax`"
    )


def test_uninstall_takes_all_back(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("__version__ = 'own'\n")
    code = """
        import importlib.metadata, sys
        import leafax
        before = list(sys.meta_path), leafax.__version__, leafax.version.__version__
        found = list(importlib.metadata.distributions(name="torch"))
        leafax.uninstall()  # nothing to take back
        leafax.install()
        import torch.nn.modules.conv, torch.jit
        assert leafax.nn.modules.conv.torch is leafax
        assert len(list(importlib.metadata.distributions(name="torch"))) == len(found) + 1
        assert torch is leafax
        leafax.uninstall()
        assert (list(sys.meta_path), leafax.__version__, leafax.version.__version__) == before
        assert len(list(importlib.metadata.distributions(name="torch"))) == len(found)
        assert not [n for n in sys.modules if n.partition(".")[0] == "torch"]
        assert leafax.__name__ == "leafax"
        assert not hasattr(leafax.nn.modules.conv, "torch")
        assert not hasattr(leafax, "torch") and not hasattr(leafax.functional, "einsum")
        import torch
        print(torch.__version__)
    """
    assert output_of(code, tmp_path) == "own\n"


def test_compiled_extensions_say_what_they_need(tmp_path: Path) -> None:
    code = """
        from importlib.machinery import ExtensionFileLoader
        import leafax
        leafax.install()
        for said in ("libc10.so: cannot open", "undefined symbol: _ZN3c10Error", "as ever"):
            def fail(self, spec): raise ImportError(said)
            ExtensionFileLoader.create_module = fail
            try:
                import _of_torch
            except ImportError as error:
                print(error)
    """
    (tmp_path / f"_of_torch{EXTENSION_SUFFIXES[0]}").touch()
    why = (
        "_of_torch is a compiled extension for PyTorch, which needs PyTorch's own libraries: it "
        "does not run with leafax standing for torch"
    )
    assert output_of(code, tmp_path) == (
        f"{why} (libc10.so: cannot open)\n{why} (undefined symbol: _ZN3c10Error)\nas ever\n"
    )


def test_versions_compare_like_pytorchs() -> None:
    import torch.torch_version as reference

    for text in ("2.13.0", "2.13.0+cpu", "2.13", "2.0rc1", "2.0.0.dev20260101", "2.1.post1"):
        ours, theirs = leafax.torch_version.TorchVersion(text), reference.TorchVersion(text)
        for other in ("2", "2.13.0", "2.9", "2.0", "2.1", "2.13.1", (2, 13), (2, 1, 0), "parrot"):
            for compare in ("__lt__", "__le__", "__eq__", "__ge__", "__gt__"):
                got, want = getattr(ours, compare)(other), getattr(theirs, compare)(other)
                assert got == want, (text, compare, other)
