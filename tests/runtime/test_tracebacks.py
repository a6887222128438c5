"""Errors end at the user's line, whatever raises them; all frames are there for those who ask."""

import logging
import os
import pdb
import subprocess
import sys
import textwrap
import traceback

import pytest

import leafax

START = "import leafax as torch\nx = torch.ones(2, 3, requires_grad=True)\n"

# Lines of a user, the last of which is wrong, and what Python writes of it.
MISTAKES = {
    "operator": ("x @ torch.ones(2, 3)", "RuntimeError: mat1 and mat2 shapes cannot be multiplied"),
    "argument": ("x.sum(dim='a')", "TypeError: sum() received an invalid combination"),
    "keyword": ("torch.relu(x, slope=2)", "TypeError: relu() got an unexpected keyword argument"),
    "function": (
        "torch.nn.functional.cross_entropy(x, torch.ones(4).long())",
        "ValueError: Expected input batch_size (2) to match target batch_size (4).",
    ),
    "backward": ("(x * 2).backward()", "RuntimeError: grad can be implicitly created only for"),
    "item": ("x.item()", "RuntimeError: a Tensor with 6 elements cannot be converted to Scalar"),
    "data": (
        "y = x[torch.tensor([5])].sum()\ny.item()",
        "IndexError: index 5 is out of bounds for dimension 0 with size 2",
    ),
    "property": ("x.grad = 3", "TypeError: assigned grad expected to be a Tensor or None but got"),
    "class": ("torch.optim.Adam([], lr=1)", "ValueError: optimizer got an empty parameter list"),
    "step": ("leaf = x.add_(1)", "RuntimeError: a leaf Variable that requires grad is being used"),
    "file": ("torch.load('nothing')", "FileNotFoundError: [Errno 2] No such file or directory"),
    "layer": ("torch.nn.Linear(5, 2)(x)", "RuntimeError: mat1 and mat2 shapes cannot be"),
    "vmap": ("torch.vmap(torch.sum)(3)", "ValueError: vmap(sum, in_dims=0, ...)(<inputs>): "),
}


def run(script: str, **env: str) -> str:
    environ = {k: v for k, v in os.environ.items() if k != "LEAFAX_TRACEBACK"}
    ran = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env=environ | {"PYTHON_COLORS": "0"} | env,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stderr


# One process for all: what takes time is to start it.
PRINTED = """
import traceback, sys
{start}
for name, script in {scripts!r}.items():
    print("==", name, file=sys.stderr)
    try:
        exec(compile(script, "user.py", "exec"), globals())
    except Exception:
        traceback.print_exc()
"""


def test_each_mistake_ends_at_the_users_line() -> None:
    scripts = {name: script for name, (script, _) in MISTAKES.items()}
    parts = run(PRINTED.format(start=START, scripts=scripts)).split("== ")[1:]
    told = {name: lines for name, *lines in map(str.splitlines, parts)}
    assert list(told) == list(MISTAKES)
    for name, (script, message) in MISTAKES.items():
        head, here, place, said, *_ = told[name]
        assert head == "Traceback (most recent call last):" and 'File "<string>"' in here, told[
            name
        ]
        line = script.count("\n") + 1
        assert place == f'  File "user.py", line {line}, in <module>', told[name]
        assert said.startswith(message), told[name]


UNCAUGHT = START + "def user():\n    return x @ torch.ones(2, 3)\nuser()\n"


@pytest.mark.exhaustive
def test_an_uncaught_error_ends_at_the_users_line_but_where_all_frames_are_asked_for() -> None:
    for mode, own in (("", 0), ("full", 5)):
        ran = subprocess.run(
            [sys.executable, "-c", UNCAUGHT],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"LEAFAX_TRACEBACK": mode},
        )
        lines = [line for line in ran.stderr.splitlines() if line.startswith("  File ")]
        assert ran.returncode == 1 and lines[0].endswith("in <module>")
        assert lines[1] == '  File "<string>", line 4, in user'
        assert len(lines) == 2 if not own else len(lines) > 2 + own
        assert "RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)" in ran.stderr


@pytest.fixture(autouse=True)
def hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LEAFAX_TRACEBACK", raising=False)


def names(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def test_frames_of_callbacks_stay() -> None:
    class Wrong(leafax.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.exp()

        @staticmethod
        def backward(ctx, g):
            raise ValueError("mine")

    def hook(g):
        return g @ leafax.ones(7)

    def of_jax(x):
        return x.nothing

    x = leafax.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="mine") as caught:
        Wrong.apply(x).sum().backward()
    here = "test_frames_of_callbacks_stay"
    assert names(caught.value) == [here, "backward"]
    y = x.exp()
    y.register_hook(hook)
    with pytest.raises(RuntimeError) as hooked:
        y.sum().backward()
    assert names(hooked.value) == [here, "hook"]
    with pytest.raises(AttributeError) as called:
        leafax.call_jax(of_jax, x)
    assert names(called.value) == [here, "of_jax"]
    with pytest.raises(RuntimeError) as mapped:
        leafax.vmap(hook)(leafax.ones(2, 3))
    assert names(mapped.value) == [here, "hook"]


def test_frames_of_flax_modules_stay() -> None:
    nn = pytest.importorskip("flax.linen")
    import jax

    from leafax.adapters.linen import Model

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            return self.mistaken(x) if x.shape[0] == 3 else nn.Dense(3)(x)

        def mistaken(self, x):
            return x.missing

    net = Net()
    model = Model(net, net.init(jax.random.key(0), jax.numpy.ones((2, 4))))
    with pytest.raises(AttributeError, match="no attribute missing") as caught:
        model(leafax.ones(3, 4))
    assert names(caught.value)[1:] == ["__call__", "mistaken"]


def _hidden_on_purpose(g):
    try:
        raise KeyError("detail")
    except KeyError:
        raise ValueError("summary") from None


def test_errors_that_the_user_was_handling_are_still_told_of() -> None:
    try:
        try:
            raise KeyError("first")
        except KeyError:
            leafax.ones(2, 3) @ leafax.ones(2, 3)
    except RuntimeError as error:
        told = "".join(traceback.format_exception(error))
        assert "KeyError: 'first'" in told and "During handling of the above" in told
        assert names(error) == ["test_errors_that_the_user_was_handling_are_still_told_of"]
    x = leafax.ones(2, requires_grad=True)
    x.register_hook(_hidden_on_purpose)
    try:
        x.sum().backward()
    except ValueError as error:
        assert "KeyError" not in "".join(traceback.format_exception(error))
    try:
        leafax.ones(2, 3).softmax(foo=2)
    except TypeError as error:
        assert "During handling" not in "".join(traceback.format_exception(error))


def test_what_is_logged_is_short_too(caplog: pytest.LogCaptureFixture) -> None:
    try:
        leafax.ones(2).item()
    except RuntimeError:
        logging.getLogger("leafax-test").exception("oh")
    assert caplog.text.count("  File ") == 1 and __file__ in caplog.text


def test_a_debugger_stands_at_the_users_line() -> None:
    try:
        leafax.ones(2).item()
    except RuntimeError as error:
        debugger = pdb.Pdb(readrc=False)
        stack, index = debugger.get_stack(None, error.__traceback__)
    assert stack[index][0].f_code.co_filename == __file__


def test_interrupts_keep_all_frames() -> None:
    def interrupted(g):
        raise KeyboardInterrupt

    y = leafax.ones(2, requires_grad=True).exp()
    y.register_hook(interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        y.sum().backward()
    assert len(names(caught.value)) > 4


def test_functions_return_and_warn_as_before() -> None:
    """A `try` that is added leaves a function's result, signature and line alone."""
    script = textwrap.dedent(
        """
        import warnings, inspect
        import leafax as torch
        assert "sizes" not in inspect.signature(torch.Tensor.backward).parameters
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            torch.nn.functional.softmax(torch.ones(2, 3))
        assert seen[0].filename == "<string>", seen[0].filename
        assert torch.ones(2).sum().item() == 2
        """
    )
    assert run(script) == ""
