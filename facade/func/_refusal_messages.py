"""PyTorch's messages for what `vmap` forbids, and the ops that each of them is about."""

from __future__ import annotations

CONTROL_FLOW = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We "
    "don't support that yet, please file an issue at https://github.com/pytorch/pytorch/issues ."
)
ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling "
    ".item() on a Tensor, please try to rewrite what you're doing with other operations. If error "
    "is occurring somewhere inside PyTorch internals, please file a bug report."
)
EITHER = (
    "vmap: It looks like you're either (1) calling .item() on a Tensor or (2) attempting to use a "
    "Tensor in some data-dependent control flow or (3) encountering this error in PyTorch "
    "internals. For (1): we don't support vmap over calling .item() on a Tensor, please try to "
    "rewrite what you're doing with other operations. For (2): we don't support data-dependent "
    "control flow in vmap yet, please file an issue at https://github.com/pytorch/pytorch/issues "
    ". For (3): please file an issue."
)
ISSUE = (
    "Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature."
)
DYNAMIC = (
    "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap "
    "over aten::{}. " + ISSUE
)
NO_FALLBACK = "Batching rule not implemented for aten::{}. We could not generate a fallback."
NO_VIEW = (
    "Batching rule not implemented for aten::{}; the fallback path doesn't work on out= or view "
    "ops."
)
NO_POINTER = "Cannot access data pointer of Tensor that doesn't have storage"
NO_STORAGE = "Cannot access storage of BatchedTensorImpl"
STATISTICS = (
    "Batch norm got a batched tensor as input while the running_mean or running_var, which will be "
    "updated in place, were not batched.\nIf you are using a module and do not need eval mode, "
    "please set `track_running_stats` to be False.If you are using a prebuilt module and do not "
    "need eval mode, please see the functorch website for resources on how to patch your module to "
    "work with vmap"
)
RANDOM_OUT = (
    "vmap: We do not support calling out variants of random operations inside of vmap. Please use "
    "non-out variants as a workaround"
)
CHANNELS = (
    "NYI: querying is_contiguous inside of vmap for memory_format other than "
    "torch.contiguous_format"
)
CLONE = (
    "NYI: Tensor.clone(memory_format) inside vmap is only supported with memory_format "
    "torch.preserve_format or torch.contiguous_format (got {})"
)
REFUSED: dict[str, tuple[type[Exception], str]] = {
    "data": (RuntimeError, "accessing `data` under vmap transform is not allowed"),
    "set_data": (
        RuntimeError, "mutating directly with `.data` under vmap transform is not allowed."
    ),
    "allclose": (RuntimeError, "vmap over torch.allclose isn't supported yet. " + ISSUE),
    "data_ptr": (RuntimeError, NO_POINTER),
    "is_contiguous": (RuntimeError, CHANNELS),
    "masked_select": (
        RuntimeError,
        "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support "
        "this because for each batch this would return a differently shaped Tensor. " + ISSUE,
    ),
    "one_hot": (
        RuntimeError,
        "When vmap-ing torch.nn.functional.one_hot, please provide an explicit positive "
        "num_classes argument.",
    ),
    "storage": (NotImplementedError, NO_STORAGE),
    **{
        f"clone to {name}": (RuntimeError, CLONE.format(name))
        for name in ("ChannelsLast", "ChannelsLast3d")
    },
    **{op: (RuntimeError, NO_FALLBACK.format(op)) for op in ("equal", "histogramdd", "is_pinned")},
    **{
        op: (RuntimeError, NO_FALLBACK.format(f"{op}.input"))
        for op in ("lstm", "gru", "rnn_tanh", "rnn_relu")
    },
    "as_strided_scatter": (
        RuntimeError,
        "Error: aten::as_strided_scatter requires special handling, and does not yet have a "
        "batching rule. Feel free to file a github issue!",
    ),
    **{
        op: (RuntimeError, DYNAMIC.format(op))
        for op in ("nonzero", "where", "_unique2", "unique_dim", "unique_consecutive")
    },
    **{op: (RuntimeError, NO_VIEW.format(op)) for op in ("_make_dual", "_unpack_dual")},
}  # fmt: skip
FINE_IN_OLDER = frozenset({"_make_dual", "_unpack_dual"})
# How PyTorch refuses to write something batched into what is not, by op: as what these have in
# common, by their own names, as shapes that do not fit, or (all others) as its fallback does.
ARITHMETIC = frozenset({
    "sub", "mul", "multiply", "div", "divide", "true_divide", "copy", "fill_", "clamp_min",
    "clamp_max", "logical_and", "logical_or", "logical_xor", "masked_fill",
})  # fmt: skip
NAMED = frozenset({
    "fill", "index_fill", "index_add", "index_put", "scatter_add", "scatter_reduce",
})  # fmt: skip
BY_SHAPE = frozenset({
    "add", "atan2", "arctan2", "copysign", "gcd", "lcm", "bitwise_and", "bitwise_or",
    "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift",
})  # fmt: skip
BATCHED = (
    "vmap: {0}(self, *extra_args) is not possible because there exists a Tensor `other` in "
    "extra_args that has more elements than `self`. This happened due to `other` being vmapped "
    "over but `self` not being vmapped over {1}. Please try to use out-of-place operators instead "
    "of {0}. If said operator is being called inside the PyTorch framework, please file a bug "
    "report instead."
)
# How many dims the operands of products have.
RANKS = {
    "mm": (2, 2), "bmm": (3, 3), "mv": (2, 1), "addmm": (2, 2), "addmv": (2, 1), "baddbmm": (3, 3),
}  # fmt: skip
