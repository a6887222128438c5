"""`autograd.backward` and `autograd.grad`."""

from __future__ import annotations

import warnings
from typing import Any

from .._core.handle import Handle
from .._core.transforms_running import active
from .._core.trie import local
from . import data_writes as data_writes  # this and the others add to the engine
from . import formulas as formulas
from . import saved as saved
from . import saved_hooks as saved_hooks
from .at_once import compute as compute
from .backward_arguments import GradientEdge, as_tuple, check_input, edge_to, inputs_of, make_grads
from .engine.task import GraphTask
from .extensions import extensions
from .graph.edges import gradient_edge
from .memo import replay_after_cut, replay_backward, replay_grad

_CYCLE = (
    "Using backward() with create_graph=True will create a reference cycle between the parameter "
    "and its gradient which can cause a memory leak. We recommend using autograd.grad when "
    "creating the graph to avoid this. If you have to use this function, make sure to reset the "
    ".grad fields of your parameters to None after use to break the cycle and avoid the leak."
)


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Accumulate the gradients of `tensors` into the leaves of their graphs.

    Args:
      tensors: what is differentiated; several are summed.
      grad_tensors: the gradient of each; None for tensors of one element.
      retain_graph: keep what the graph saved; defaults to `create_graph`.
      create_graph: record the gradients, so that they can be differentiated.
      inputs: accumulate into these only: tensors, edges, or a dict of them.
    """
    if active.depth:
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use "
            "functorch.grad or functorch.vjp instead or call backward() outside of functorch "
            "transforms."
        )
    if inputs is None and grad_tensors is None and isinstance(tensors, Handle):
        value = tensors._v
        plain = not create_graph and grad_variables is None and local.settings.anomaly is None
        plain = plain and tensors._stale is None
        if plain and value.requires_grad and value.numel == 1 and value.dtype.kind == "f":
            keep = bool(retain_graph)
            if not (replay_backward.run(tensors, keep) or replay_after_cut.run(tensors, keep)):
                roots = [(gradient_edge(tensors), replay_backward.ones_like(value))]
                GraphTask(roots, keep_graph=keep, create_graph=False).run()
            return
    if grad_variables is not None:
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.",
            FutureWarning,
            stacklevel=2,
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                "`backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    wanted = None if inputs is None else inputs_of(inputs, "backward")
    outputs = as_tuple(tensors)
    given = as_tuple(grad_tensors) if grad_tensors is not None else (None,) * len(outputs)
    keep = create_graph if retain_graph is None else retain_graph
    grads = make_grads(outputs, given)
    roots = [(edge_to(t, i), g) for i, (t, g) in enumerate(zip(outputs, grads, strict=True))]
    captures = None
    if wanted is not None:
        captures = []
        for t in wanted:
            check_input(t)
            if not isinstance(t, GradientEdge):
                t.grad_fn  # noqa: B018 # a view of what was written to is asked for its history
                t.retain_grad()
            captures.append(edge_to(t, 0, False))
    task = GraphTask(
        roots, keep_graph=keep, create_graph=create_graph, captures=captures,
        accumulate_captured=inputs is not None,
    )  # fmt: skip
    if create_graph:
        task.warnings.append((_CYCLE, ""))
    task.run()


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """Return the gradients of the sum of `outputs` with respect to `inputs`.

    Args:
      outputs, inputs: tensors or edges; what is differentiated, and with respect to what; a
        dict of inputs gives a dict of gradients.
      grad_outputs: the gradient of each output; None for tensors of one element.
      retain_graph: keep what the graph saved; defaults to `create_graph`.
      create_graph: record the gradients, so that they can be differentiated.
      allow_unused: return None for an input that the outputs do not depend on, instead of
        raising; defaults to `materialize_grads`.
      is_grads_batched: `grad_outputs` have a leading dimension, over which gradients are
        computed one by one; so have the results.
      materialize_grads: zeros instead of None for unused inputs.

    Returns:
      One gradient an input, in its shape and dtype.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To "
            "accumulate gradient for other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    outs, ins = as_tuple(outputs), inputs_of(inputs, "grad")
    given = as_tuple(grad_outputs) if grad_outputs is not None else (None,) * len(outs)
    keep = create_graph if retain_graph is None else retain_graph
    grads = make_grads(outs, given, is_grads_batched)
    if is_grads_batched:
        found = _batched(outs, ins, grads, keep, create_graph, allow_unused)
    else:
        found = _one(outs, ins, grads, keep, create_graph, allow_unused)
    if materialize_grads:
        found = [
            _zeros(t, create_graph) if g is None else g for g, t in zip(found, ins, strict=True)
        ]
    return dict(zip(inputs, found, strict=True)) if type(inputs) is dict else tuple(found)


def _zeros(t: Any, requires_grad: bool) -> Any:
    if isinstance(t, GradientEdge):
        raise RuntimeError(
            "materialize_grads cannot be used when the given input is a GradientEdge"
        )
    return extensions.zeros_like(t, requires_grad=requires_grad)


def _one(
    outs: Any, ins: Any, grads: list[Any], keep: bool, create_graph: bool, allow_unused: bool
) -> list[Any]:
    """Walk once; returns the gradients of `ins`."""

    def ends() -> tuple[list[Any], list[Any]]:
        roots = [(edge_to(t, i), g) for i, (t, g) in enumerate(zip(outs, grads, strict=True))]
        edges: list[Any] = []
        for t in ins:
            check_input(t)
            if not isinstance(t, GradientEdge) and not t.requires_grad:
                raise RuntimeError("One of the differentiated Tensors does not require grad")
            edges.append(edge_to(t, 0, False))
        return roots, edges

    if replay_grad.is_plain(outs, ins, grads):
        found = replay_grad.run(outs, ins, ends, grads, keep, create_graph)
    else:
        roots, edges = ends()
        task = GraphTask(roots, keep_graph=keep, create_graph=create_graph, captures=edges)
        captured = task.run()
        found = [captured.get(e) for e in edges]
    for i, g in enumerate(found):
        if g is None and not allow_unused:
            raise RuntimeError(
                f"The differentiated Tensor at index {i} appears to not have been used in the "
                "graph. Set allow_unused=True if this is the desired behavior."
            )
    return found


def _batched(
    outs: Any, ins: Any, grads: list[Any], keep: bool, create_graph: bool, allow_unused: bool
) -> list[Any]:
    """Walk once, mapped over the rows of `grads`: hooks are called once, as in PyTorch."""
    tensors = [g for g in grads if g is not None]

    for g in tensors:
        if g.dim() == 0:
            raise ValueError(
                "vmap(vjp, in_dims=0, ...)(<inputs>): Got in_dim=0 for some input, but that input "
                "is a Tensor of dimensionality 0 so expected in_dim to satisfy 0 <= in_dim < 0."
            )

    def vjp(*rows: Any) -> list[Any]:
        given = iter(rows)
        rest = [None if g is None else next(given) for g in grads]
        found = _one(outs, ins, rest, keep, create_graph, allow_unused)
        there[:] = [g is not None for g in found]
        return [g for g in found if g is not None]

    there: list[bool] = []
    results = iter(extensions.map_rows(vjp, tensors))
    return [next(results) if held else None for held in there]
