"""A queue with one lock and one thread a connection: just enough STOMP for the load generator to be tested against."""

from __future__ import annotations

import socket
import threading
from collections import deque
from contextlib import suppress


class TinyBroker:
    """One queue on a free port of 127.0.0.1, to any destination; `fault` spoils message number `FAULTY`.

    A rejected message is delivered again.

    Faults: `lose` it, `double` it, keep its receipt back (`silence`), answer it with an ERROR (`refuse`).
    Frames leave in pieces, cut at odd places, when `pieces` gives their size.
    """

    FAULTY = 60

    def __init__(self, fault: str | None = None, pieces: int | None = None) -> None:
        self.fault = fault
        self.pieces = pieces
        self.acks: set[bytes] = set()
        self.nacks: list[bytes] = []
        self._delivered: dict[bytes, bytes] = {}
        self.received = 0
        self._lock = threading.Lock()
        self._waiting: deque[bytes] = deque()
        self._consumers: deque[socket.socket] = deque()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = self._server.getsockname()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        held = b""
        with client, suppress(OSError):
            while chunk := client.recv(65536):
                *frames, held = (held + chunk).split(b"\0")
                for each in frames:
                    head, _, body = each.lstrip(b"\n").partition(b"\n\n")
                    command, *lines = head.split(b"\n")
                    self._handle(client, command, dict(line.split(b":", 1) for line in lines), body)

    def _handle(self, client: socket.socket, command: bytes, headers: dict[bytes, bytes], body: bytes) -> None:
        with self._lock:
            if command in (b"CONNECT", b"STOMP"):
                self._write(client, b"CONNECTED\nversion:1.2\n\n\0\n")
            elif command == b"SUBSCRIBE":
                self._consumers.append(client)
            elif command == b"ACK":
                self.acks.add(headers[b"id"])
            elif command == b"NACK":
                self.nacks.append(headers[b"id"])
                self._write(client, self._delivered[headers[b"id"]])
            elif command == b"SEND":
                self.received += 1
                if self._spoilt(client, headers, body):
                    return
                self._deliver(headers, body)
            if b"receipt" in headers:
                self._write(client, b"RECEIPT\nreceipt-id:" + headers[b"receipt"] + b"\n\n\0\n")

    def _spoilt(self, client: socket.socket, headers: dict[bytes, bytes], body: bytes) -> bool:
        """Apply the fault if this is the message for it; True when that is all there is to do."""
        if self.received != self.FAULTY:
            return False
        if self.fault == "refuse":
            self._write(client, b"ERROR\nmessage:no room\n\n\0")
        if self.fault in ("double", "silence"):
            self._deliver(headers, body)
        if self.fault == "lose":
            self._write(client, b"RECEIPT\nreceipt-id:" + headers[b"receipt"] + b"\n\n\0\n")
        return self.fault in ("refuse", "silence", "lose")

    def _deliver(self, headers: dict[bytes, bytes], body: bytes) -> None:
        if not self._consumers:
            return
        self._consumers.rotate(1)
        kept = b"".join(b"%b:%b\n" % (name, headers[name]) for name in (b"destination", b"sent") if name in headers)
        name = b"id-%d" % self.received
        self._delivered[name] = b"MESSAGE\nsubscription:1\nack:%b\n%b\n%b\0\n" % (name, kept, body)
        self._write(self._consumers[0], self._delivered[name])

    def _write(self, client: socket.socket, data: bytes) -> None:
        size = self.pieces or len(data)
        for start in range(0, len(data), size):
            client.sendall(data[start : start + size])
