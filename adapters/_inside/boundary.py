"""Places in a traced call where values have names."""

from __future__ import annotations

from typing import NamedTuple


class Boundary(NamedTuple):
    """A place in the program: inputs (`"in"`) or outputs (`"out"`) of a submodule's n-th call.

    Inside a loop, outputs are stacked, and before the loop there is their `"probe"`.
    """

    kind: str
    path: str
    turn: int

    def spell(self, n: int) -> str:
        return f"{self.kind}|{self.path}|{self.turn}|{n}"

    def probe(self, name: str) -> str:
        """Return the name of the probe of a value with this name."""
        return self._replace(kind="probe").spell(int(name.rpartition("|")[2]))

    @classmethod
    def read(cls, name: str) -> Boundary:
        kind, path, count, _ = name.split("|")
        return cls(kind, path, int(count))
