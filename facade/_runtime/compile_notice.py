"""A notice on the terminal while something compiles for longer than a second."""

from __future__ import annotations

import sys
import threading
from typing import Any

AFTER = 1.0  # seconds


class Notice:
    """One compilation's notice: a spinner of rich, or a plain line where that is not installed.

    Args:
      what: is compiled.
      out: the terminal; stderr by default.
    """

    def __init__(self, what: str, out: Any = None) -> None:
        self._text = f"leafax compiles {what} ..."
        self._out = sys.stderr if out is None else out
        self._shown: Any = None
        self._lock = threading.Lock()  # it may end while it begins
        self._ended = False
        self._timer = threading.Timer(AFTER, self.show)
        self._timer.daemon = True
        self._timer.start()

    def show(self) -> None:
        """Show it, unless what it tells of is done."""
        try:
            from rich.console import Console
        except ImportError:
            Console = None  # type: ignore[assignment, misc]
        with self._lock:
            if self._ended:
                return
            if Console is None:
                self._shown = self._out
                self._write(self._text)
            else:
                self._shown = Console(file=self._out).status(self._text)
                self._shown.start()

    def end(self, seconds: float) -> None:
        """Take it off; the plain line says how long it took."""
        self._timer.cancel()
        with self._lock:
            self._ended = True
            if self._shown is self._out:
                self._write(f" {seconds:.1f} s\n")
            elif self._shown is not None:
                self._shown.stop()

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
