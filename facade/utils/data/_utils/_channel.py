"""The two ends of the way between a worker and the process that loads."""

from __future__ import annotations

import os
import select
import socket
from typing import Any

from ._transport import Incoming, packed

_MOST = 1 << 16  # bytes read at once


class Channel:
    """One end of a pair of sockets, through which objects go in both directions.

    Args:
      sock: one of `socket.socketpair()`.
      waits: sending waits until the other end has read; else it never does, and `flush` sends what
        is left. Only an end that waits sends large objects in files.
    """

    def __init__(self, sock: socket.socket, waits: bool) -> None:
        self._sock, self._waits = sock, waits
        sock.setblocking(waits)
        self._incoming = Incoming()
        self._left = bytearray()

    def fileno(self) -> int:
        return self._sock.fileno()

    @property
    def has_left(self) -> bool:
        """Whether something was not sent yet."""
        return bool(self._left)

    def send(self, x: Any) -> None:
        """Send an object.

        Raises:
          OSError: if the other end is closed.
        """
        head, parts, fd = packed(x, shared=self._waits)
        message = b"".join([head, *parts])
        if not self._waits:
            self._left += message
            self.flush()
            return
        if fd is None:
            self._sock.sendall(message)
            return
        try:
            sent = socket.send_fds(self._sock, [message], [fd])
            self._sock.sendall(message[sent:])
        finally:
            os.close(fd)

    def flush(self) -> None:
        """Send of what is left as much as goes without waiting."""
        while self._left:
            try:
                sent = self._sock.send(self._left)
            except BlockingIOError:
                return
            del self._left[:sent]

    def read(self) -> tuple[Any] | None:
        """The next object, alone in a tuple; None if it is not there yet.

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
        self._sock.close()


def ready(channels: list[Channel], timeout: float) -> None:
    """Wait until something can be read, or more of what is left can be sent, or time is up."""
    if hasattr(select, "poll"):
        poll: Any = select.poll()
        for channel in channels:
            poll.register(channel, select.POLLIN | (select.POLLOUT if channel.has_left else 0))
        poll.poll(timeout * 1e3)
    else:
        select.select(channels, [c for c in channels if c.has_left], [], timeout)
