"""A TCP proxy that tests cut, and in which they drop what one side sends."""

from __future__ import annotations

import contextlib
import socket
import threading
import time


class Proxy:
    """Listens on a port of its own and passes on to `target`, another or the path of a socket, which may change.

    `refusing`: who comes now is turned away. `answers_are_lost_from`: the question, such as `b"COMMIT"`, to which and
    after which no answer comes any more, until the link is cut. `hold_from`: the question from which on a link passes
    on nothing until `let_through`. `swallow` and `let_through`: a network that drops what is sent, and says nothing of
    it.
    """

    def __init__(self, target: int | str) -> None:
        self.target, self.refusing = target, False
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self.answers_are_lost = self.questions_are_lost = False
        self.answers_are_lost_from: bytes | None = None
        self.hold_from: bytes | None = None
        self._open, self._swallowed = threading.Event(), 0  # how often
        self._open.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Break what is connected; who comes then is served as ever, and nothing is lost any more."""
        pairs, self._pairs = self._pairs, []
        for each in (end for pair in pairs for end in pair):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self.answers_are_lost = self.questions_are_lost = False
        self.answers_are_lost_from = None

    def swallow(self) -> None:
        """Nothing gets through, nothing is refused: what is connected now hears nothing any more until it is cut, and
        who comes is connected once it is let through.
        """
        self._open.clear()
        self._swallowed += 1

    def let_through(self) -> None:
        """Serve who comes, and who came meanwhile."""
        self.hold_from = None
        self._open.set()

    def close(self) -> None:
        """Serve nobody any more."""
        self._listening.close()
        self._open.set()
        self.cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                self._open.wait()
                if self.refusing:
                    near.close()
                    continue
                try:
                    far = _connected(self.target)
                except OSError:
                    near.close()
                    continue
                self._pairs.append((near, far))
                threading.Thread(target=self._pass_on, args=(near, far, "questions_are_lost"), daemon=True).start()
                threading.Thread(target=self._pass_on, args=(far, near, "answers_are_lost"), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, lost: str) -> None:
        swallowed = self._swallowed
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if lost == "questions_are_lost" and self.answers_are_lost_from and self.answers_are_lost_from in data:
                    self.answers_are_lost = True
                while lost == "questions_are_lost" and self.hold_from and self.hold_from in data:
                    time.sleep(0.05)
                if not getattr(self, lost) and swallowed == self._swallowed:
                    target.sendall(data)
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def _connected(target: int | str) -> socket.socket:
    if isinstance(target, int):
        return socket.create_connection(("127.0.0.1", target))
    found = socket.socket(socket.AF_UNIX)
    found.connect(target)
    return found
