"""Which statements random programs leave out: what PyTorch itself does not define."""

from __future__ import annotations

import contextlib
import re
import warnings
from typing import Any

import torch


def forbidden(line: str, form: str, space: dict[str, Any], x: str, y: str, w: str) -> bool:
    """Tell whether the outcome of a line in PyTorch depends on memory or on a kernel."""
    given = [space[name] for name in (x, y, w)]
    for rule in RULES:
        with contextlib.suppress(RuntimeError):  # one of them may not be looked at any more
            if rule(form, given, space):
                return True
    return False


def told_by_data(error: Exception) -> bool:
    """Tell whether an error is about the data: leafax raises it when a value is observed."""
    words = ("out of bounds", "out of range: ", "could not be completed", "index out of range")
    words += ("INTERNAL ASSERT", "ZeroTensors are immutable")  # or PyTorch's own mistake
    text = str(error)
    return any(word in text for word in words) or type(error).__name__ == "_LinAlgError"


def counts_its_own_writes(new: Any, *given: Any) -> bool:
    """Tell whether `new` was written to, seen anew or recorded by the function that made it, from
    inference tensors.

    Which of PyTorch's composite functions do is a matter of its kernels (`x * 2` of one that
    requires grad is not recorded, `x % 2` is, `abs(x)` raises); here `clone` and casts do.
    """
    if not any(x.is_inference() for x in given) or new.is_inference():
        return False
    if all(x.is_inference() for x in given) and new.requires_grad:
        return True
    bases = [x if x._base is None else x._base for x in given]
    return bool(new._version > 0 or new._is_view() and all(new._base is not b for b in bases))


def _ends_unwritten(form: str, given: list[Any], space: Any) -> bool:
    """The new elements at the end of a tensor that was made larger may hold anything."""
    return "resize_" in form and given[0].numel() < 2


def _memory_of_losses(form: str, given: list[Any], space: Any) -> bool:
    """Behind a reduced loss lies what its kernel had there before it was reduced."""
    if "as_strided" not in form and "nbytes" not in form:
        return False
    x = given[0]
    whole = x if x._base is None else x._base
    of_loss = whole.numel() == 1 and whole.untyped_storage().nbytes() > whole.nbytes
    return of_loss or x.grad_fn is not None and "Loss" in x.grad_fn.name()


def _data_of_view(form: str, given: list[Any], space: Any) -> bool:
    """`.data` of a view, of what has views or another shape, or of inference tensors.

    PyTorch ties a view to its base though one of them has other memory by now, and makes tensors
    that are partly inference tensors. Here the view is made anew from the base at a write, a write
    that autograd would record to one whose base has other memory raises, and `x` is what `y` is.
    """
    if ".data = " not in form:
        return False
    x, y = given[:2]
    if form == "{x}.data = {y}" and x is y:
        return False
    if "inference_mode()" in form and not form.endswith("{x}.data = {y}"):
        return not x.is_inference()  # what is made there is an inference tensor
    apart = x.shape != y.shape or x.is_inference() != y.is_inference()
    apart = apart or y.is_inference() and ("{x}.data * 2" in form or "{y}.clone()" in form)
    return apart or any(_tied_by_views(t, space) for t in (x, y))


def _tied_by_views(t: torch.Tensor, space: Any) -> bool:
    held = [x for x in space.values() if isinstance(x, torch.Tensor)]
    return t._is_view() or any(x._is_view() and x._base is t for x in held)


# What writes to `{x}` as its kernel goes along, and an operand that it reads on the way.
_WRITES = re.compile(r"_\(|[-+*/%]= |\] = |DirtyPair|Dirty\.apply\(\{x\}[\[)]")
_READS = re.compile(r"\{([yw])\}(?:\.detach\(\))?(?=[,)]|$)|\] = ([a-z]\w*)$")


def _over_itself(form: str, given: list[Any], space: Any) -> bool:
    """A write to memory that overlaps unevenly with an operand.

    PyTorch refuses it where both are dense; elsewhere the order of its kernel decides. So it does
    for a tensor that has some of its memory twice. Here operands are read before the write.
    """
    if not _WRITES.search(form) or "out=" in form:
        return False
    x, y, w = (t.detach() for t in given)
    if "{x}" in form and len(_bytes(x)) < x.numel() * x.itemsize and 0 not in x.stride():
        return True
    read = [w if found[1] == "w" else y for found in _READS.finditer(form)]
    in_part = "{x}[" in form or "{x}.data[" in form
    return any(_uneven(x, t, in_part) for t in read)


def _uneven(x: torch.Tensor, y: torch.Tensor, in_part: bool) -> bool:
    if x.untyped_storage().data_ptr() != y.untyped_storage().data_ptr():
        return False
    if _bytes(x).isdisjoint(_bytes(y)) or x.is_set_to(y):
        return False
    return in_part or not (_dense(x) and _dense(y))


def _bytes(x: torch.Tensor) -> set[int]:
    """Where in the storage the elements lie."""
    starts, size = {x.storage_offset()}, x.itemsize
    for n, step in zip(x.shape, x.stride(), strict=True):
        starts = {start + i * step for start in starts for i in range(n)}
    return {start * size + i for start in starts for i in range(size)}


def _dense(x: torch.Tensor) -> bool:
    expected = 1
    for step, n in sorted(zip(x.stride(), x.shape, strict=True)):
        if n != 1 and step != expected:
            return False
        expected *= n
    return True


def _gradient_with_history(form: str, given: list[Any], space: Any) -> bool:
    """Names in the graph of a gradient are PyTorch's own affair."""
    if "DirtyPair" in form:  # adds the gradient to a tensor that is none
        return any(t is given[1] for name, t in space.items() if name[0] == "g")
    if "{x}.grad" not in form or "{x}.grad = " in form:
        return False
    grad = None
    x = given[0]
    with contextlib.suppress(RuntimeError):  # what it is a view of was written to
        grad = x.grad if x.is_leaf or x.retains_grad else None
    return grad is not None and grad.requires_grad


def _gradient_saved(form: str, given: list[Any], space: Any) -> bool:
    """PyTorch's version of a gradient tells how its engine made it, copied or taken over.

    Here it is 0 when it is new, and each addition counts one.
    """
    node = given[0].grad_fn
    if "saved({x}" not in form or node is None:
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gradients = [t.grad for t in space.values() if isinstance(t, torch.Tensor)]
    pointers = {g.data_ptr() for g in gradients if g is not None}
    for name in dir(node):
        with contextlib.suppress(RuntimeError):  # it was written to since, or freed
            kept = getattr(node, name) if name.startswith("_saved_") else None
            if isinstance(kept, torch.Tensor) and kept.data_ptr() in pointers:
                return True
    return False


def _tied(form: str, given: list[Any], space: Any) -> bool:
    """Of equal elements the kernel picks one."""
    picking = ("max(0)", "min(-1)", "topk", "kthvalue", "median", "argmax", "max_pool")
    if not any(word in form for word in picking):
        return False
    x = given[0].detach()
    return x.is_complex() or x.unique().numel() < x.numel()


def _no_integer(form: str, given: list[Any], space: Any) -> bool:
    """An integer made of a number that it cannot hold depends on the kernel."""
    if all(t.is_floating_point() for t in given) and "int" not in form:
        return False
    return any(not t.isfinite().all() or bool((t.abs() > 1e6).any()) for t in map(_plain, given))


def _not_finite(form: str, given: list[Any], space: Any) -> bool:
    """Complex products with infinities, the order of sums of large numbers, eigenvalues."""
    if "eigvalsh" in form and not _plain(given[0]).square().sum().isfinite():
        return True
    return any(not _plain(t).isfinite().all() for t in given if t.is_complex())


def _plain(t: torch.Tensor) -> torch.Tensor:
    return t.detach().resolve_conj().resolve_neg()


def _overlapping(form: str, given: list[Any], space: Any) -> bool:
    """A result that is written to the memory of what it is computed from, or twice to its own."""
    memory = [t.untyped_storage().data_ptr() for t in given]
    written = re.search(r"out=\{([xw])\}", form)
    if written is not None:
        out = given["xyw".index(written[1])].detach()
        if len(_bytes(out)) < out.numel() * out.itemsize and 0 not in out.stride():
            return True
    if "out={x}" in form:
        return any(_uneven(given[0].detach(), t.detach(), False) for t in given[1:])
    return "out={w}" in form and memory[2] in memory[:2]


def _unsafe(form: str, given: list[Any], space: Any) -> bool:
    """Without autograd the unsafe splits make views, or not, as their kernels are written.

    Writes to the pieces change what the whole's node saved there; here backward reads that.
    """
    if "unsafe" not in form:
        return False
    saved = given[0].grad_fn is not None and "Linalg" in given[0].grad_fn.name()
    return saved or "inference" in form or any(t.is_inference() for t in given)


def _looked_at_by_hooks(form: str, given: list[Any], space: Any) -> bool:
    """Batched gradients cannot be looked at after the hook."""
    words = ("hook", "every(", "some(", "retain_grad")
    hooked = any(word in line for word in words for line in space["lines"])
    return hooked and "is_grads_batched" in form


def _crashes(form: str, given: list[Any], space: Any) -> bool:
    """PyTorch crashes when a view that was written to gets a hook before its `grad_fn` is asked.

    In inference mode it finds no gradient edges of leaves; where mutation of saved tensors is
    allowed, it cannot clone the numbers that were saved.
    """
    if "edge(" in form and "inference" in form:
        return True
    if "saved(" in form and "allow_mutation" in form:
        return True
    hook = any(word in form for word in ("register_hook", "once(", "every(", "some("))
    written = any(t._is_view() and not t.is_inference() and t._version for t in given)
    return hook and written


def _grows(form: str, given: list[Any], space: Any) -> bool:
    """Programs of programs of squares fill the memory."""
    most = 12 if "hessian" in form or "jac" in form else 200
    return any(t.numel() > most for t in given)


def _set_of_view(form: str, given: list[Any], space: Any) -> bool:
    """`set_` of a view, or of what has views.

    PyTorch's backward raises later, and views that stay with the old memory get its history. Here
    the call raises where autograd tracks the view, and views keep their history.
    """
    return "set_(" in form and _tied_by_views(given[0], space)


def _frozen(form: str, given: list[Any], space: Any) -> bool:
    """Optimizers and clips leave frozen parameters alone, whatever gradient they still have."""
    if "opt." not in form and "clip_grad" not in form:
        return False
    held = [space[name] for name in "bc" if name in space]
    if "opt" in space:
        held += [p for g in space["opt"].param_groups for p in g["params"]]
    return any(not t.requires_grad or not t.is_leaf for t in held)


def _bits(form: str, given: list[Any], space: Any) -> bool:
    """The bits of a number that was rounded, the sign of a complex product's zero: XLA knows
    that a product with 1 is the other factor.
    """
    if "repr(" in form:
        return given[0].is_complex() and bool((torch.view_as_real(_plain(given[0])) == 0).any())
    if re.search(r"(log|exp|sin|cos|tan|sqrt|pow|sigmoid|erf|softmax)\w*(_\(|\(.*out=)", form):
        return any(_seen_otherwise(x, space) for x in given)
    if ".view(torch." not in form or given[0].dtype not in (torch.float64, torch.complex128):
        return False
    x = torch.view_as_real(_plain(given[0])) if given[0].is_complex() else _plain(given[0])
    return bool((x * 2**20).frac().any()) or given[0].is_complex() and bool((x == 0).any())


def _side_of_a_cut(form: str, given: list[Any], space: Any) -> bool:
    """The sign of a zero in `-z` tells on which side of a cut a logarithm or a root is taken.

    It is + in whole vectors of PyTorch's kernel and - behind them; here it is -.
    """
    if not re.search(r"log|sqrt|acos|asin|atan|pow|angle|\*\*|renorm", form):
        return False
    if not any(re.search(r"neg|(^|[ (])-[a-z]", line) for line in space["lines"]):
        return False
    of_complex = [torch.view_as_real(t) for t in map(_plain, given) if t.is_complex()]
    return any(bool((parts == 0).any()) for parts in of_complex)


def _seen_otherwise(x: torch.Tensor, space: Any) -> bool:
    """Tell whether another tensor takes the bits of this one for numbers of another kind."""
    memory, width = x.untyped_storage().data_ptr(), torch.finfo(x.dtype).bits if _rounds(x) else 0
    held = [t for t in space.values() if isinstance(t, torch.Tensor)]
    return any(
        t.untyped_storage().data_ptr() == memory
        and (torch.finfo(t.dtype).bits if _rounds(t) else 0) != width
        for t in held
    )


def _rounds(x: torch.Tensor) -> bool:
    return x.is_floating_point() or x.is_complex()


def _rounded_to_nothing(form: str, given: list[Any], space: Any) -> bool:
    """Rounding leaves a zero or a tiny number: which of them is a matter of the kernel."""
    parts = [torch.view_as_real(t) if t.is_complex() else t for t in map(_plain, given)]
    if "nonzero" in form and given[0].grad_fn is not None and parts[0].is_floating_point():
        return bool((parts[0] == 0).any())  # it may be what rounding left here alone
    return any(((t != 0) & (t.abs() < 1e-12)).any() for t in parts if t.is_floating_point())


def _periodic(form: str, given: list[Any], space: Any) -> bool:
    """The sine of a large number tells how that was rounded."""
    if not any(word in form for word in ("sin", "cos", "tan")):
        return False
    most = 10 if "exp" in form else 1e6
    return any(bool((t.abs() > most).any()) for t in map(_plain, given))


def _index_of_a_number(form: str, given: list[Any], space: Any) -> bool:
    """PyTorch looks up the size of the dim that a 0-dim tensor does not have."""
    return "{x}[-1]" in form and not given[0].dim()


def _logit_of_nothing(form: str, given: list[Any], space: Any) -> bool:
    """PyTorch's second derivative of it at 0 and 1 is NaN, ours is finite."""
    x = _plain(given[0])
    return "logit(" in form and bool(((x == 0) | (x == 1)).any())


def _integers_with_history(form: str, given: list[Any], space: Any) -> bool:
    """Integers that are written to with what requires grad have no node here.

    PyTorch gives them one, and then raises internal errors.
    """
    x, y = given[:2]
    if x.is_floating_point() or x.is_complex() or not y.requires_grad:
        return False
    return any(word in form for word in ("fill_({y}", "eq_({y}", "] = "))


def _taken_over(form: str, given: list[Any], space: Any) -> bool:
    """A leaf that was viewed takes over the gradient given, so that two may share memory.

    Here a `.grad` is memory of its own.
    """
    if "{x}.backward({y}" not in form:
        return False
    views = ("View", "queeze", "Alias", "Transpose", "Permute", "TBackward")
    return any(word in name for name in _graph_of(given[0]) for word in views)


def _graph_of(x: torch.Tensor) -> set[str]:
    """The names of the nodes that made `x`."""
    seen, stack = set(), [x.grad_fn]
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.add(node)
            stack += [n for n, _ in node.next_functions]
    return {node.name() for node in seen}


def _endless(form: str, given: list[Any], space: Any) -> bool:
    """A loop that makes anew what it counts the writes of."""
    return form.startswith("while ") and ("{x} = " in form or "{x} @= " in form)


def _halved_pivots(form: str, given: list[Any], space: Any) -> bool:
    """`det` saves pivots too, and what hooks make of integers by `/ 2` it refuses to solve with."""
    return "with hooks()" in form and "linalg.det" in form


def _gradient_of_products(form: str, given: list[Any], space: Any) -> bool:
    """PyTorch's gradient of `prod` asks for zeros, and is one graph or another: here one node."""
    if "grad_fn" not in form or not any("create_graph" in line for line in space["lines"]):
        return False
    return any("ProdBackward" in name for name in _graph_of(given[0]))


def _float32_in_wider_memory(form: str, given: list[Any], space: Any) -> bool:
    """The last bit of what is computed in float32, of integers, and written to float64 memory."""
    x, y = given[:2]
    integers = not (y.is_floating_point() or y.is_complex())
    return "torch.sin({y}, out={x})" in form and integers and x.dtype.itemsize > 4


def _vmap_over_nothing(form: str, given: list[Any], space: Any) -> bool:
    """PyTorch looks for the first of no examples, and raises; here the result has none."""
    return "vmap(" in form and given[0].shape[:1] == (0,)


def _saved_part(form: str, given: list[Any], space: Any) -> bool:
    """A saved part of a tensor is no view once a cut has left the rest behind."""
    if "saved(" not in form or not any("cut()" in line for line in space["lines"]):
        return False
    node = given[0].grad_fn
    for name in dir(node):
        found = getattr(node, name) if name.startswith("_saved_") else None
        if isinstance(found, torch.Tensor) and found._is_view():
            if found._base.numel() != found.numel():
                return True
    return False


RULES = (
    _bits, _side_of_a_cut, _rounded_to_nothing, _logit_of_nothing, _integers_with_history,
    _taken_over, _periodic, _index_of_a_number, _endless,
    _ends_unwritten, _memory_of_losses, _data_of_view, _over_itself, _gradient_with_history,
    _gradient_saved, _tied,
    _overlapping,
    _unsafe, _looked_at_by_hooks, _crashes, _grows, _set_of_view, _no_integer,
    _not_finite, _frozen, _halved_pivots, _float32_in_wider_memory, _vmap_over_nothing, _saved_part,
    _gradient_of_products,
)  # fmt: skip
