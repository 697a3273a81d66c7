"""Sends requests to the process that evaluates XPath; starts it on demand. It ends with its parent."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Protocol

from brokerapp.selectors.xpath.worker import BYTES, CHECK, EXPRESSION, MOMENT, OVERRUN, TEXT, WRONG, YES

#: Seconds the process may take for an answer in all, on however busy a machine, the time to start it included.
PATIENCE = 10.0

#: Seconds of the processor's time that reading a body may take.
BODY_SECONDS = 0.05

_PROJECT = Path(__file__).resolve().parents[3]


class MessageBody(Protocol):
    """A message's body."""

    data: bytes
    is_bytes: bool  #: it says its encoding itself
    is_xml: bool | None  #: None: nobody looked


class XPathProcess:
    """The process, for one process that asks; its threads take turns."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._asked_by = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._loaded: MessageBody | None = None  # what the process has parsed

    def check(self, expression: str, seconds: float) -> None:
        """Raise ValueError for an expression that cannot be used, TimeoutError for one that takes too long."""
        with self._turn:
            answer = self._expression(CHECK, expression, seconds) or self._expression(CHECK, expression, seconds)
        if answer in (None, OVERRUN):
            raise TimeoutError
        if answer.startswith(WRONG):
            raise ValueError(answer[1:].decode())

    def is_xml(self, body: MessageBody) -> bool:
        """Return whether the body is XML."""
        with self._turn:
            return self._load(body)

    def holds(self, expression: str, body: MessageBody, seconds: float) -> bool:
        """Return whether an expression is true for this body. Raises TimeoutError."""
        with self._turn:
            answer = None
            while answer is None:  # else the process was lost, and the body with it
                if not self._load(body):
                    return False
                answer = self._expression(EXPRESSION, expression, seconds)
            if answer == OVERRUN:
                self._loaded = None
                raise TimeoutError
            return answer == YES

    def _expression(self, kind: bytes, expression: str, seconds: float) -> bytes | None:
        return self._ask(kind + MOMENT.pack(seconds) + expression.encode())

    def _load(self, body: MessageBody) -> bool:
        if body.is_xml is not False and self._loaded is not body:
            question = (BYTES if body.is_bytes else TEXT) + MOMENT.pack(BODY_SECONDS) + body.data
            body.is_xml = (self._ask(question) or self._ask(question)) == YES
            self._loaded = body if body.is_xml else None
        return bool(body.is_xml)

    def _ask(self, question: bytes) -> bytes | None:
        """Return the reply; None if the process terminated before it replied."""
        try:
            connection = self._connected()
            if connection.poll():  # it says that it died, when nobody asked anything
                connection.recv_bytes()
                self._loaded = None
                return None
            connection.send_bytes(question)
            if connection.poll(PATIENCE):
                return connection.recv_bytes()
            answer: bytes | None = OVERRUN
        except (OSError, EOFError):
            answer = None
        self._end()
        return answer

    def _connected(self) -> Connection:
        if self._connection is None or self._asked_by != os.getpid():
            ours, theirs = socket.socketpair()
            self._connection, self._asked_by, self._loaded = Connection(ours.detach()), os.getpid(), None
            with theirs:
                command = [sys.executable, "-m", "brokerapp.selectors.xpath.worker", str(theirs.fileno())]
                self._process = subprocess.Popen(
                    command, cwd=_PROJECT, pass_fds=[theirs.fileno()], start_new_session=True
                )
        return self._connection

    def _end(self) -> None:
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._connection = self._process = self._loaded = None


#: The one of this process.
XPATH_PROCESS = XPathProcess()
