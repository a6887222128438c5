"""The two ends of the way between a worker and the process that loads."""

from __future__ import annotations

import os
import select
import socket
import weakref
from typing import Any

from ._transport import Incoming, Outgoing

_MOST = 1 << 16  # bytes read at once
_open: weakref.WeakSet[Channel] = weakref.WeakSet()


class Channel:
    """One end of a pair of sockets, through which objects go in both directions.

    Nothing here waits: `send` keeps what the other end has no room for, and `flush` sends it.

    Args:
      sock: one of `socket.socketpair()`.
    """

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._incoming, self._outgoing = Incoming(), Outgoing()
        self._left = bytearray()
        self._fds: list[int] = []  # go with the first bytes that are left
        _open.add(self)

    def fileno(self) -> int:
        return self._sock.fileno()

    @property
    def has_left(self) -> bool:
        """Tell whether something was not sent yet."""
        return bool(self._left)

    def send(self, x: Any, shared: bool = False) -> None:
        """Send an object, as much of it as goes now.

        Args:
          shared: large objects go in memory that both ends see.

        Raises:
          OSError: if the other end is closed.
        """
        known = self._incoming.here, self._incoming.there
        message, fd = self._outgoing.packed(x, shared, *known)
        self._left += message
        if fd is not None:
            self._fds.append(fd)
        self.flush()

    def flush(self) -> None:
        """Send of what is left as much as goes now."""
        while self._left:
            try:
                if self._fds:
                    sent = socket.send_fds(self._sock, [self._left], self._fds)
                    self._fds.clear()
                else:
                    sent = self._sock.send(self._left)
            except BlockingIOError:
                return
            del self._left[:sent]

    def read(self) -> tuple[Any] | None:
        """Return the next object, alone in a tuple; None if it is not there yet.

        Raises:
          EOFError: if the other end is closed.
        """
        found = self._incoming.next()
        while found is None:
            try:
                if hasattr(socket, "recv_fds"):
                    data, fds, *_ = socket.recv_fds(self._sock, _MOST, 1)
                else:
                    data, fds = self._sock.recv(_MOST), []
            except BlockingIOError:
                return None
            except ConnectionError:
                raise EOFError from None
            if not data:
                raise EOFError
            self._incoming.add(data, fds)
            found = self._incoming.next()
        return found

    def close(self) -> None:
        """Close this end."""
        self._incoming.close()
        self._outgoing.close()
        self._sock.close()


def _close_inherited() -> None:
    """Close what a forked process has of its parent's ends: while it has them they are open."""
    for channel in list(_open):
        channel.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_inherited)


def ready(channels: list[Channel], timeout: float | None = None, reads: bool = True) -> None:
    """Wait until something can be read, or more of what is left can be sent, or time is up.

    Args:
      timeout: in seconds; None waits without end.
      reads: False waits for sending alone.
    """
    writing = [channel for channel in channels if channel.has_left]
    reading = channels if reads else []
    if not hasattr(select, "poll"):
        select.select(reading, writing, [], timeout)
        return
    poll = select.poll()
    for channel in reading:
        poll.register(channel, select.POLLIN)
    for channel in writing:
        poll.register(channel, select.POLLOUT | (select.POLLIN if reads else 0))
    poll.poll(None if timeout is None else timeout * 1e3)
