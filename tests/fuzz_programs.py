"""Random imperative programs, as source text: drawn as numbers, written with torch running along.

Each step is a tuple of small numbers; what they mean depends on the tensors that the program has
made so far (their shapes, and that is why torch runs along), so any list of steps is a program and
shrinks to a smaller one.
"""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import torch

PRELUDE = """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return 2 * g * x
class Through(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)
    @staticmethod
    def backward(ctx, g):
        return g * 3
class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x
    @staticmethod
    def backward(ctx, g):
        return g
class Dirty(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x
    @staticmethod
    def backward(ctx, g):
        return g * 2
class Pair(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y, x + 1
    @staticmethod
    def backward(ctx, g, h):
        y, = ctx.saved_tensors
        return g * y + h
def hooks(): return torch.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2)
def keeping(): return torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)
def named(node): return None if node is None else node.name()
"""
START = (
    "a = torch.tensor([[0.5, -1.25, 2.0], [1.5, 0.25, -0.75]], dtype=torch.float64)",
    "b = torch.tensor([[1.0, 2.0, -0.5], [0.75, -1.5, 0.125]], dtype=torch.float64, "
    "requires_grad=True)",
    "c = torch.tensor([0.5, 1.5, -2.0], dtype=torch.float64, requires_grad=True)",
    "z = torch.tensor([[0.5 + 1j, -2j], [1.5, 1 - 1j]], dtype=torch.complex128, "
    "requires_grad=True)",
    "d = b * 2",
)
UNARY = ("sin()", "cos()", "tanh()", "sigmoid()", "neg()", "clone()", "abs()", "exp().tanh()",
         "sum()", "mean(0)", "sum(-1, keepdim=True)", "relu()", "square()", "contiguous()",
         "sum(0)", "flip(0)", "cumsum(0)", "prod()", "conj()", "repeat(2, 1)", "softmax(0)",
         "sgn()", "sum_to_size(1)", "tril()", "detach().clone()", "double()", "logsumexp(0)",
         "to(torch.float64)", "real * 2", "norm()")  # fmt: skip
BINARY = ("{} + {}", "{} - {}", "{} * {}", "torch.maximum({}, {})", "{}.mul({})",
          "torch.atan2({}, {})", "torch.where({} > 0, {}, 1.0)", "torch.add({}, {}, alpha=2)",
          "torch.stack([{}, {}])", "torch.cat([{}, {}])", "{} / ({} + 3)",
          "torch.mul({0}, {1}, out=torch.empty_like({0}))", "torch.outer({}, {})",
          "torch.mm({}, {}.t())")  # fmt: skip
NUMBER = ("{} * 0.5", "{} + 1", "2 - {}", "{} / 4", "{} ** 2", "1.5 * {}", "{} ** 3",
          "1 / ({} + 5)",
          "{} * 2j", "{} - 1", "{} % 2")  # fmt: skip
VIEWS = ("t()", "view(-1)", "[0]", "[..., 1:]", "[:, 0]", "[1:]", "reshape(-1)", "unsqueeze(0)",
         "detach()", "data", "expand(2, *{}.shape)", "diagonal()", "narrow(0, 0, 1)", "[::2]",
         "select(0, 0)", "squeeze()", "transpose(0, -1)", "view_as({})", "flatten()",
         "unbind(0)[0]", "chunk(2)[0]", "permute(*range({}.dim()))", "movedim(0, -1)",
         "unsqueeze(-1)[..., 0]", "[None]", "[:, 1:2]", "[-1]", "[0, 1]", "[1:, ::2]", "mT", "T",
         "view(3, 2)", "split(1)[0]", "tensor_split(2)[0]", "swapaxes(0, 1)", "diagonal(1)",
         "unflatten(-1, (1, -1))", "squeeze(0)", "unfold(0, 1, 1)", "as_strided((2,), (1,))",
         "real", "imag", "as_strided((2, 2), (2, 1), 0)", "expand(2, 3)", "split([1, 1])[1]",
         "expand_as({})", "[:]", "[...]", "hsplit(1)[0]", "adjoint()")  # fmt: skip
INPLACE = ("mul_(0.5)", "add_(1)", "sin_()", "tanh_()", "zero_()", "fill_(0.25)", "sigmoid_()",
           "clamp_(-1, 1)", "neg_()", "pow_(2)", "div_(2)", "exp_().sin_()", "t_()", "squeeze_()",
           "unsqueeze_(0)", "relu_()", "abs_()", "sub_(0.5)", "cumsum_(0)", "transpose_(0, -1)",
           "conj_physical_()", "requires_grad_()", "resize_(2)", "masked_fill_({} > 0, 0.5)",
           "index_fill_(0, torch.tensor([0]), 2.0)", "mul_({})", "copy_({}.clone())",
           "tril_()", "square_()", "reciprocal_()", "floor_()", "grad.zero_()",
           "grad.mul_(2)")  # fmt: skip
INPLACE2 = ("{}.mul_({})", "{}.add_({})", "{}.copy_({})", "{} += {}", "{} *= {}",
            "{}.sub_({}, alpha=2)", "{}.addcmul_({}, {})", "{}.lerp_({}, 0.5)", "{}.div_({} + 4)",
            "{}.atan2_({})", "{}.data = {}", "torch.sin({1}, out={0})", "{}.add_({}.sum())",
            "{}.copy_({}.detach())", "{}.data.copy_({})", "{}.grad = {}")  # fmt: skip
SETITEM = ("[0] = {}", "[..., 0] = {}", "[:] = {}", "[1:] = {}", "[...] = {}", "[::2] = {}",
           "[torch.tensor([0])] = {}", "[:, 1] = {}", "[-1] = {}", "[0, 0] = {}",
           "[[0]] = {}")  # fmt: skip
FLAGS = ("retain_grad()", "requires_grad_()", "requires_grad_(False)", "detach_()",
         "requires_grad = True", "grad = None", "register_hook(lambda g: g * 2)",
         "register_hook(lambda g: see.gradients(g))", "register_hook(lambda g: None)",
         "register_post_accumulate_grad_hook(lambda p: see.gradients(p.grad))",
         "grad_fn.register_hook(lambda gi, go: see(len(gi), len(go)))",
         "grad_fn.register_prehook(lambda go: (go[0] * 2, *go[1:]))",
         "grad_fn.register_hook(lambda gi, go: tuple(g if g is None else g * 0.5 for g in gi))",
         "register_hook(lambda g: g.mul(2).sin())", "register_hook(lambda g: see(g.requires_grad))",
         "requires_grad_(True)", "retain_grad()")  # fmt: skip
SCOPES = ("torch.no_grad()", "torch.enable_grad()", "torch.set_grad_enabled(False)", "hooks()",
          "keeping()", "torch.inference_mode()")  # fmt: skip
CALLS = ("Double.apply({})", "Through.apply({})", "Same.apply({})", "Dirty.apply({})",
         "Pair.apply({})[0]", "Pair.apply({})[1]")  # fmt: skip
LOOKS = ("see(named({0}.grad_fn), {0}._version, {0}.is_leaf)", "see({0}.requires_grad)",
         "see({0}.grad_fn)", "see({0}._base is {1})", "see(tuple({0}.shape), {0}.output_nr)",
         "see({0}.grad_fn is None or len({0}.grad_fn.next_functions))",
         "see({0}.detach().clone())", "see({0}.is_contiguous())")  # fmt: skip
KINDS = 15
Step = tuple[int, int, int, int]


class Ignore:
    gradients = __call__ = lambda self, *x: None


def write(steps: list[Step]) -> list[str]:
    """The statements of a program."""
    lines = list(START)
    space: dict[str, Any] = {"torch": torch, "see": Ignore()}
    exec(PRELUDE, space)
    for line in lines:
        exec(line, space)
    names, made = ["a", "b", "c", "z", "d"], 0
    for kind, i, j, k in steps:
        x = names[-1 - i % len(names)]
        fits = [n for n in names if _fits(space[n], space[x])]
        y = fits[j % len(fits)]
        new = f"x{made}"
        kind %= KINDS
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            line = _statement(kind, x, y, new, j, k, space)
        if j % 5 == 4 and kind not in (9, 13):
            scope = SCOPES[k // 7 % len(SCOPES)]
            line = f"with {scope}: {line}"
        with warnings.catch_warnings(), contextlib.suppress(Exception):
            warnings.simplefilter("ignore")
            exec(line, space)
        if _counts_its_own_writes(space.get(new), space.get(x), space.get(y)):
            if not line.endswith("clone()"):
                line = "cut()"
                del space[new]
        if kind == 13 and x not in space:
            names.remove(x)
        if isinstance(space.get(new), torch.Tensor):
            names.append(new)
            made += 1
        else:
            space.pop(new, None)
        lines.append(line)
    return lines


def _statement(kind: int, x: str, y: str, new: str, j: int, k: int, space: Any) -> str:
    if kind == 0:
        return f"{new} = {x}.{UNARY[k % len(UNARY)]}"
    if kind == 1:
        return f"{new} = " + BINARY[k % len(BINARY)].format(x, y, y)
    if kind == 2:
        return f"{new} = " + NUMBER[k % len(NUMBER)].format(x)
    if kind in (3, 4):
        view = VIEWS[k % len(VIEWS)]
        view = view.format(x if "shape" in view or "dim" in view else y)
        return f"{new} = {x}{view}" if view[0] == "[" else f"{new} = {x}.{view}"
    if kind in (5, 14):
        if INPLACE[k % len(INPLACE)] == "resize_(2)" and space[x].numel() < 2:
            return f"{x}.zero_()"  # what a larger tensor has at its end, nobody can say
        return f"{x}.{INPLACE[k % len(INPLACE)].format(y)}"
    if kind == 6:
        form = INPLACE2[k % len(INPLACE2)]
        if form == "{}.data = {}" and space[x]._is_view():
            form = "{}.data.copy_({})"
        return form.format(x, y, y)
    if kind == 7:
        return x + SETITEM[k % len(SETITEM)].format(y if j % 2 else 0.5)
    if kind == 8:
        return f"{x}.{FLAGS[k % len(FLAGS)]}"
    if kind == 9:
        return _backward(x, y, j, k)
    if kind == 10:
        grad = None
        with contextlib.suppress(RuntimeError):  # what it is a view of was written to
            grad = space[x].grad if space[x].is_leaf or space[x].retains_grad else None
        fits = grad is not None and not grad.requires_grad
        return f"{new} = {x}.grad.clone()" if k % 3 == 2 and fits else "cut()"
    if kind == 11:
        return f"{new} = " + CALLS[k % len(CALLS)].format(x)
    if kind == 12:
        return LOOKS[k % len(LOOKS)].format(x, y)
    if x in ("a", "b", "c", "z"):
        return "cut()"
    return f"del {x}"


def _counts_its_own_writes(new: Any, *given: Any) -> bool:
    """Whether `new` was written to by the function that made it, from inference tensors.

    Which of them do is a matter of PyTorch's kernels: kept, see docs/differences.md.
    """
    inference = any(x is not None and x.is_inference() for x in given)
    return inference and new is not None and not new.is_inference() and new._version > 0


def _fits(y: torch.Tensor, x: torch.Tensor) -> bool:
    try:
        return torch.broadcast_shapes(x.shape, y.shape) == x.shape
    except RuntimeError:
        return False


def _backward(x: str, y: str, j: int, k: int) -> str:
    keep = ", retain_graph=True" if j % 2 else ""
    total = f"({x} * {x}.conj()).sum().real"
    return (
        f"{x}.sum().backward({keep[2:]})",
        f"{x}.backward(torch.ones_like({x}){keep})",
        f"{total}.backward({keep[2:]})",
        f"see.gradients(*torch.autograd.grad({x}.sum(), {y}, allow_unused=True{keep}))",
        f"see.gradients(*torch.autograd.grad({x}.sum(), [b, {y}]{keep}))",
        f"{x}.sum().backward(inputs=[{y}]{keep})",
        f"torch.autograd.grad({total}, b, create_graph=True)[0].sum().backward()",
        f"torch.autograd.backward([{x}.sum(), {y}.sum()]{keep})",
        f"see.gradients(*torch.autograd.grad({total}, [{x}, b], allow_unused=True{keep}))",
        f"see.gradients(*torch.autograd.grad(torch.autograd.grad({total}, b, create_graph=True)"
        f"[0].sum(), [b, {y}], allow_unused=True))",
        f"see.gradients(*torch.autograd.grad({x}, {y}, torch.ones_like({x}){keep}))",
        f"b.data.sub_(b.grad * 0.1), {total}.backward()",
    )[k % 12]


def program(lines: list[str], watch: bool = False) -> Any:
    """The statements as a function for `sameness.run`.

    Every line's error is noted; at the end all that the variables show.

    Args:
      watch: note the flags of all tensors after every line, too.
    """
    codes = [compile(line, f"line {n}", "exec") for n, line in enumerate(lines)]
    prelude = compile(PRELUDE, "prelude", "exec")

    def run(torch: Any, see: Any) -> None:
        space: dict[str, Any] = {"torch": torch, "see": see, "cut": lambda: _cut(torch)}
        exec(prelude, space)
        for n, code in enumerate(codes):
            try:
                exec(code, space)
            except Exception as e:
                see((n, e))
            if watch:
                for name in _tensors(torch, space):
                    see.attempt(see, n, name, space[name])
        for name in _tensors(torch, space):
            x = space[name]
            see(name)
            see.attempt(see, x)
            see.attempt(lambda x=x: see.gradients(x.grad) if x.is_leaf or x.retains_grad else None)
            see.attempt(lambda x=x: x.grad_fn)

    return run


def _tensors(torch: Any, space: dict[str, Any]) -> list[str]:
    return sorted(name for name, x in space.items() if isinstance(x, torch.Tensor))


def _cut(lib: Any) -> None:
    if lib is not torch:
        lib.synchronize()
