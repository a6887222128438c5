"""Choices between ways to compute an op that give the same values.

An op says what is meant, so its body may choose by shape and device. `lowerings(convolution="xla")`
turns a choice off for programs that are compiled from then on.
"""

from __future__ import annotations

_WAYS = {
    "convolution": ("auto", "xla"), "products": ("auto", "xla"), "op_by_op": ("auto", "exact"),
}  # fmt: skip
_chosen = {name: ways[0] for name, ways in _WAYS.items()}


def lowerings(**choices: str) -> dict[str, str]:
    """Choose how ops are lowered in programs compiled from now on; return what is chosen.

    Args:
      convolution: "auto" takes matrix products or shifted products on CPUs where they were
        measured to be faster (`benchmarks/results.md`) and float32 for halves, "xla" always
        XLA's convolution.
      products: "auto" turns an operand of the weight gradients of linear layers round on CPUs,
        in the programs of the facade, where that was measured to be faster; "xla" never does.
      op_by_op: "auto" runs programs of the facade op by op at first, where their values are there
        sooner and may differ from those of later runs by rounding; "exact" only where they do not.

    Returns:
      The way of each, those not named here as they were.

    Raises:
      ValueError: for a name or a way that does not exist.

    >>> from leafax.functional import lowerings
    >>> lowerings(convolution="xla")
    {'convolution': 'xla', 'products': 'auto', 'op_by_op': 'auto'}
    >>> lowerings(convolution="auto")
    {'convolution': 'auto', 'products': 'auto', 'op_by_op': 'auto'}
    """
    for name, way in choices.items():
        if way not in _WAYS.get(name, ()):
            known = "; ".join(f"{n}: {', '.join(ways)}" for n, ways in _WAYS.items())
            raise ValueError(f"there is no lowering {name}={way!r}; there are {known}")
    _chosen.update(choices)
    return dict(_chosen)


def may_run_op_by_op() -> bool:
    """Return whether values may be computed by other means than a compiled program.

    They may differ from those of later runs by rounding.
    """
    return _chosen["op_by_op"] == "auto"
