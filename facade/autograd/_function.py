"""`autograd.Function`: an op whose gradient the user writes.

`forward` records its ops without gradients; the outputs' gradients go to the context, which is
a graph node. `backward` is called in the engine's walk with lazy tensors, so both are part of
the compiled step.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from typing import Any

from .._autograd.graph.delayed_error import DelayedError
from .._core.dual_levels import recording_levels, tangents_enabled
from .._core.grad_modes import no_grad
from .._core.handle import Handle
from .._core.transforms_running import active
from .._core.trie import local
from ._context import FunctionCtx
from ._function_jvp import carry_tangents
from ._function_vmap import any_differs, apply_in_vmap, check_mappable


class FunctionMeta(type):
    """Make the context class `<Name>Backward` of each Function."""

    def __init__(cls, name: str, bases: Any, attrs: dict[str, Any]) -> None:
        super().__init__(name, bases, attrs)
        cls._backward_cls = type(  # type: ignore[attr-defined]
            name + "Backward", (FunctionCtx,),
            {"_forward_cls": cls, "__module__": "torch.autograd.function"},
        )  # fmt: skip


class Function(metaclass=FunctionMeta):
    """Subclass with static `forward` and `backward`, and call `apply`.

    `forward(ctx, *args)` computes the outputs; or `forward(*args)` does, and
    `setup_context(ctx, inputs, output)` saves what backward needs. `backward(ctx, *grads)` takes
    one gradient an output and returns one (or None) an argument of forward.

    >>> import leafax
    >>> class Square(leafax.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return 2 * x * grad
    >>> x = leafax.tensor([3.0], requires_grad=True)
    >>> Square.apply(x).backward()
    >>> x.grad
    tensor([6.])
    """

    generate_vmap_rule = False
    clear_saved_tensors_on_access = False
    boxed_grads_call = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{self.__class__} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself. Instantiating an autograd "
            "function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __getattr__(self, attribute: str) -> Any:
        """Look an attribute up in a context: to PyTorch an instance is one, of no call."""
        if not attribute.startswith("__"):
            if "_ctx" not in self.__dict__:
                self._ctx = self._backward_cls()  # type: ignore[attr-defined]
            if hasattr(self._ctx, attribute):
                return getattr(self._ctx, attribute)
        raise AttributeError(
            f"'{type(self).__name__}' object has no attribute '{attribute}'",
            name=attribute,
            obj=self,
        )

    def name(self) -> str:
        """Return the class's name."""
        return type(self).__name__

    def _register_hook_dict(self, tensor: Any) -> None:
        """Do nothing: no gradient will arrive here."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use "
            "new-style autograd function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; override it."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save what backward needs, where `forward` takes no context; override it."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Compute gradients of the inputs from those of the outputs; override it."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Compute tangents of the outputs from those of forward's arguments; override it."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """Compute outputs and their batch dims from batches (`in_dims`: theirs); override it."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod "
            "or set generate_vmap_rule=True."
        )

    @classmethod
    def _backward_rule(cls) -> Any:
        """Return the one of `backward` and `vjp` that is overridden."""
        by_vjp = cls.vjp is not Function.vjp
        if by_vjp and cls.backward is not Function.backward:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
                "should only implement one of them."
            )
        return cls.vjp if by_vjp else cls.backward

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Record `forward` on `args`, differentiated by `backward`."""
        separate = cls.setup_context is not Function.setup_context
        if separate:
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        if active.depth and not separate:
            raise RuntimeError(
                "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, "
                "jacrev, ...), it must override the setup_context staticmethod. For more details, "
                "please see https://pytorch.org/docs/main/notes/extending.func.html"
            )
        if local.vmap is not None and active.depth:
            # Also where nothing differs from example to example.
            check_mappable(cls, cls.vmap is not Function.vmap)
            if any_differs(args):
                if any(isinstance(a, Handle) for a in kwargs.values()):
                    raise NotImplementedError(
                        "Run vmap on autograd.Function with kwarg-only Tensor args. Please do not "
                        f"pass kwarg-only Tensors to autograd.Function. Got: {kwargs}"
                    )
                return apply_in_vmap(cls, args, Function)
        if kwargs and separate:  # no place among the arguments
            called = "custom_function_call_grad" if active.depth else "forward"
            raise TypeError(f"{called}() got an unexpected keyword argument '{next(iter(kwargs))}'")
        ctx = (_generated(cls) if active.depth else cls._backward_cls)()  # type: ignore[attr-defined]
        if kwargs and not separate:
            args = _bind(cls.forward, ctx, args, kwargs)
        tensors = [a for a in args if isinstance(a, Handle)]
        records = ctx._begin(args)
        with no_grad(), tangents_enabled(False):
            if separate:
                output = cls.forward(*args)
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args)
            outputs = output if isinstance(output, tuple) else (output,)
            ctx.check_marks(separate, records)
            if separate:
                ctx.refuse_inputs_saved(outputs, tensors)
            outs = ctx._prepare(outputs, tensors)
        with recording_levels(()):
            made = ctx._finish(outs, tensors, records)
        if local.mode.dual:
            carry_tangents(cls, ctx, args, made)
            ctx.keep_tangents(made)
        ctx._forget()
        return tuple(made) if isinstance(output, tuple) else made[0]


@functools.cache
def _generated(cls: Any) -> Any:
    """Make the class of a Function's nodes inside transforms, where PyTorch makes a Function."""
    return type(f"{cls.__name__}GeneratedBackward", (cls._backward_cls,), {})


def _bind(forward: Any, ctx: Any, args: Any, kwargs: Any) -> Any:
    """Put arguments of `forward` that are given by name in their places.

    Raises:
      TypeError: as a call of `forward` would, for a name that has no place among them.
    """
    signature = inspect.signature(forward)
    places = [n for n, p in signature.parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    for name in kwargs:
        if name not in places:
            raise TypeError(f"forward() got an unexpected keyword argument '{name}'")
    for name in kwargs:
        if name in places[: 1 + len(args)]:
            raise TypeError(f"forward() got multiple values for argument '{name}'")
    bound = signature.bind(ctx, *args, **kwargs)
    bound.apply_defaults()
    return bound.args[1:]


def once_differentiable(fn: Any) -> Any:
    """Decorate a `backward` that cannot be differentiated, so that doing so raises."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        with no_grad():
            outputs = fn(ctx, *args)
        if not local.mode.enabled:
            return outputs
        if not any(isinstance(a, Handle) and a._tracked for a in args):  # type: ignore[attr-defined]
            return outputs
        flat = outputs if isinstance(outputs, tuple) else (outputs,)
        error = DelayedError(
            "trying to differentiate twice a function that was marked with @once_differentiable",
            len(flat),
        )
        fakes = [_fake(x) for x in flat]
        if active.depth:  # a transform sees Functions, but not the engine's own nodes
            outs = _OnceError.apply(*fakes)
            return outs if isinstance(outputs, tuple) else outs[0]
        return error(*fakes)

    return wrapper


def _fake(x: Any) -> Any:
    if not isinstance(x, Handle):
        return x
    out: Any = x.detach()  # type: ignore[attr-defined]
    out._set_role(True)
    return out


class _OnceError(Function):
    """Return the inputs; backward raises."""

    @staticmethod
    def forward(*xs: Any) -> Any:
        return tuple(x.clone() if isinstance(x, Handle) else x for x in xs)  # type: ignore[attr-defined]

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )


class InplaceFunction(Function):
    """Keep the name of Functions from before `mark_dirty`; new code subclasses `Function`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace
