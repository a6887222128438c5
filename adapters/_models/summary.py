"""`summary(model)`: what trains, what is frozen, and what it costs, as a table."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import leafax
from leafax.distributed.sharding import sharding_of, spec_text

HEADER = ("path", "shape", "dtype", "trains", "bytes", "optimizer bytes")


class Row(NamedTuple):
    """One tensor of a model, or several of one kind below a path.

    Attributes:
      path: dotted path; with `depth`, its beginning.
      shape: None where tensors are taken together.
      kind: `"trainable"`, `"frozen"` or `"buffer"`.
      tensors, numbers: how many tensors, and how many numbers in them.
      nbytes, state_nbytes: of the tensors, and of the optimizer's state for them.
      spec: how a mesh of devices splits them; empty on one device.
    """

    path: str
    shape: tuple[int, ...] | None
    dtype: str
    kind: str
    tensors: int
    numbers: int
    nbytes: int
    state_nbytes: int
    spec: str = ""

    def cells(self, spread: bool = False) -> tuple[str, ...]:
        """Return what the table says of it.

        Args:
          spread: the table has a column for specs.
        """
        shape = f"{self.tensors} tensors" if self.shape is None else str(list(self.shape))
        state = _bytes(self.state_nbytes) if self.state_nbytes else ""
        found = (self.path, shape, self.dtype, self.kind, _bytes(self.nbytes), state)
        return (*found, self.spec) if spread else found


class Summary:
    """The table; `str()` of it is its text, and `rich.print` shows it in colour.

    Attributes:
      rows: what it shows.
      totals: one row each for what is trainable, frozen and a buffer.
      shared_nbytes: optimizer state that belongs to no single parameter.
    """

    def __init__(self, rows: list[Row], shared_nbytes: int) -> None:
        self.rows, self.shared_nbytes = rows, shared_nbytes
        self.totals = [
            _together(f"total {kind}", kind, [row for row in rows if row.kind == kind])
            for kind in ("trainable", "frozen", "buffer")
        ]

    @property
    def _spread(self) -> bool:
        return any(row.spec for row in self.rows)

    @property
    def _header(self) -> tuple[str, ...]:
        return (*HEADER, "spec") if self._spread else HEADER

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def _footer(self) -> list[tuple[str, ...]]:
        cells = [row.cells(self._spread) for row in self.totals if row.tensors]
        cells = [(c[0], f"{r.numbers:,} numbers", *c[2:]) for c, r in zip(
            cells, [row for row in self.totals if row.tensors], strict=True
        )]  # fmt: skip
        if self.shared_nbytes:
            shared = ("optimizer, shared", "", "", "", "", _bytes(self.shared_nbytes))
            cells.append((*shared, "") if self._spread else shared)
        return cells

    def __str__(self) -> str:
        try:
            from rich.console import Console
        except ImportError:
            return self.text()
        out = io.StringIO()
        Console(file=out, width=160).print(self)
        return "\n".join(line.rstrip() for line in out.getvalue().splitlines())

    __repr__ = __str__

    def text(self) -> str:
        """Return the table as plain text, without rich."""
        spread, footer = self._spread, self._footer()
        body = [row.cells(spread) for row in self.rows]
        columns = zip(self._header, *body, *footer, strict=True)
        widths = [max(map(len, column)) for column in columns]
        rule = "  ".join("-" * width for width in widths)

        def line(cells: tuple[str, ...]) -> str:
            pairs = list(zip(cells, widths, strict=True))
            left = [cell.ljust(width) for cell, width in pairs[:4]]
            right = [cell.rjust(width) for cell, width in pairs[4:6]]
            return "  ".join(left + right + [cell for cell, _ in pairs[6:]]).rstrip()

        return "\n".join([line(self._header), rule, *map(line, body), rule, *map(line, footer)])

    def __rich__(self) -> Any:
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD)
        for i, name in enumerate(self._header):
            table.add_column(name, justify="right" if i in (4, 5) else "left", no_wrap=True)
        styles = {"trainable": "green", "frozen": "dim", "buffer": "dim italic"}
        spread = self._spread
        for row in self.rows:
            cells = tuple(cell.replace("[", r"\[") for cell in row.cells(spread))
            table.add_row(*cells, style=styles[row.kind])
        table.add_section()
        for cells in self._footer():
            table.add_row(*cells, style="bold")
        return table


def summary(model: Any, optimizer: Any = None, *, depth: int | None = None) -> Summary:
    """Tabulate a model's tensors: which train, their bytes, and those of the optimizer's state.

    Args:
      model: a model of `adapters.linen` or `adapters.nnx`, or a `leafax.nn.Module`.
      optimizer: a `leafax.optim` optimizer of its parameters; its state appears with its first
        step.
      depth: names of a path to keep: what lies below is taken together. None shows each tensor.

    >>> from flax import nnx
    >>> from leafax.adapters.nnx import Model
    >>> model = Model(nnx.Linear(3, 2, rngs=nnx.Rngs(0))).freeze("bias")
    >>> print(summary(model).text())
    path             shape      dtype    trains     bytes  optimizer bytes
    ---------------  ---------  -------  ---------  -----  ---------------
    bias             [2]        float32  frozen       8 B
    kernel           [3, 2]     float32  trainable   24 B
    ---------------  ---------  -------  ---------  -----  ---------------
    total trainable  6 numbers  float32  trainable   24 B
    total frozen     2 numbers  float32  frozen       8 B
    """
    held, rest = ({}, 0) if optimizer is None else _state_bytes(optimizer)
    rows = [
        _row(name, t, "trainable" if t.requires_grad else "frozen", held.get(id(t), 0))
        for name, t in model.named_parameters()
    ]
    rows += [_row(name, t, "buffer", 0) for name, t in model.named_buffers()]
    return Summary(rows if depth is None else _grouped(rows, depth), rest)


def _row(name: str, t: Any, kind: str, state: int) -> Row:
    dtype = str(t.dtype).removeprefix("torch.")
    sharding = sharding_of(t)
    spec = "" if sharding is None else spec_text(sharding)
    return Row(name, tuple(t.shape), dtype, kind, 1, t.numel(), t.nbytes, state, spec)


def _grouped(rows: list[Row], depth: int) -> list[Row]:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((".".join(row.path.split(".")[:depth]), row.kind), []).append(row)
    return [
        members[0] if len(members) == 1 else _together(path, kind, members)
        for (path, kind), members in groups.items()
    ]


def _together(path: str, kind: str, rows: list[Row]) -> Row:
    dtypes = ", ".join(sorted({row.dtype for row in rows}))
    sums = (sum(column) for column in zip(*(row[4:8] for row in rows), (0, 0, 0, 0), strict=True))
    return Row(path, None, dtypes, kind, *sums)


def _state_bytes(optimizer: Any) -> tuple[dict[int, int], int]:
    """Count bytes of optimizer state by parameter (by id), and those that belong to none."""
    params = [p for group in optimizer.param_groups for p in group["params"]]
    found: dict[int, int] = {}
    rest = 0
    for key, held in optimizer.state_dict()["state"].items():
        tensors = list(held.values()) if isinstance(held, dict) else [held]
        nbytes = sum(t.nbytes for t in tensors if isinstance(t, leafax.Tensor))
        # `Optax` keys its state by the path in optax's state, which has the parameter's number.
        numbers = [key] if isinstance(key, int) else re.findall(r"\['(\d+)'\]", key)[-1:]
        if numbers:
            p = id(params[int(numbers[0])])
            found[p] = found.get(p, 0) + nbytes
        else:
            rest += nbytes
    return found, rest


def _bytes(n: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if n >= size:
            return f"{n / size:.1f} {unit}"
    return f"{n} B"
