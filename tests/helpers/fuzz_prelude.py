"""The source text that each random program starts with: Functions, hooks and helpers."""

PRELUDE = """
import copy, pickle
F = torch.nn.functional
fw = torch.autograd.forward_ad
edge = torch.autograd.graph.get_gradient_edge
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
class Partly(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        ctx.factor, mask = 3, x > 0
        ctx.mark_non_differentiable(mask)
        return x * 3, x.sin(), mask
    @staticmethod
    def backward(ctx, g, h, m):
        return None if g is None else g * ctx.factor
class Needs(torch.autograd.Function):
    @staticmethod
    def forward(x, y, power):
        return x ** power * y
    @staticmethod
    def setup_context(ctx, inputs, output):
        x, y, ctx.power = inputs
        ctx.save_for_backward(x, y)
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        n, left, right = ctx.power, None, None
        if ctx.needs_input_grad[0]:
            left = (g * n * x ** (n - 1) * y).sum_to_size(x.shape)
        if ctx.needs_input_grad[1]:
            right = (g * x ** n).sum_to_size(y.shape)
        return left, right, None
class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.tanh()
        ctx.save_for_backward(y)
        return y
    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        y, = ctx.saved_tensors
        return g * (1 - y * y)
class Nothing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.cos()
    @staticmethod
    def backward(ctx, g):
        return None
class Part(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x[:1]
    @staticmethod
    def backward(ctx, g):
        return g.expand(ctx.shape) * 2
class TwoParts(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x), x.reshape(-1)
    @staticmethod
    def backward(ctx, g, h):
        return g + h.view_as(g)
class DirtyPair(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        y.add_(x)
        ctx.mark_dirty(y)
        return y, x * 2
    @staticmethod
    def backward(ctx, g, h):
        return (g + 2 * h).sum_to_size(ctx.needs_input_grad and g.shape), g
class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g.sum(0), g
def hooks(): return torch.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2)
def keeping(): return torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)
def named(node): return None if node is None else node.name()
def once(x):
    def hook(g):
        handle.remove()
        return g * 2
    handle = x.register_hook(hook)
    return handle
def saved(node):
    names = ("self", "other", "result", "exponent", "mask", "index", "condition", "mat1", "mat2")
    return {n: attempt(node, "_saved_" + n) for n in names}
def attempt(node, name):
    try:
        return getattr(node, name)
    except AttributeError:
        return None
    except RuntimeError as e:
        return e
def walk(node):
    found = []
    while node is not None:
        found.append(node.name())
        node = next((n for n, _ in node.next_functions if n is not None), None)
    return found
def dual(f, x):
    with fw.dual_level():
        return fw.unpack_dual(f(fw.make_dual(x, torch.ones_like(x)))).tangent
def frozen(x, f):
    with torch.no_grad():
        return f(x)
def every(*xs): return torch.autograd.graph.register_multi_grad_hook(
    xs, lambda gs: see([g is None for g in gs]))
def some(*xs): return torch.autograd.graph.register_multi_grad_hook(
    xs, lambda g: see(tuple(g.shape)), mode="any")
def again(x): return x.sin() * x
def twice(x):
    x.add_(1)
    return x * 2
def again_in(use_reentrant, f, x): return torch.utils.checkpoint.checkpoint(
    f, x, use_reentrant=use_reentrant)
"""
