"""Lenses through ops that have several results, which read the data by their places instead.

Autograd knows the piece of `x.split(4)` by the op and its number. The data are read by a `narrow`
whose start may change, so that a loop over minibatches is one program and not one for each.
"""

from __future__ import annotations

from .view_ops import Lens


class Pieces(tuple):  # type: ignore[type-arg]
    """A lens through ops with several results, and one that reads the same by numbered places.

    Attributes:
      read: the other lens.
    """

    read: Lens

    @classmethod
    def of(cls, lens: Lens, read: Lens) -> Lens:
        """Make one of both."""
        made = cls(lens)
        made.read = read
        return made


def read_of(lens: Lens) -> Lens:
    """Return the lens by which the data are read: `lens`, but for `Pieces`."""
    return lens.read if type(lens) is Pieces else lens
