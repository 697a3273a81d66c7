"""Two clients: stomp.py, as real applications use it, and a bare socket for what no library would send."""

from __future__ import annotations

import itertools
import queue
import socket
import ssl
import threading
from collections.abc import Iterator
from typing import Any

import stomp
from stomp.utils import Frame

from brokerapp.stomp import frames

PATIENCE = 20.0  # a broker in a thread of a busy machine may take ten seconds to be linked
CONNECTIONS = {"1.0": stomp.Connection10, "1.1": stomp.Connection11, "1.2": stomp.Connection12}

_numbers = itertools.count(1)


class StompClient(stomp.ConnectionListener):
    """stomp.py with its frames in queues. Every call that can have a receipt waits for it, unless told not to."""

    def __init__(self, port: int, version: str = "1.2", heartbeats: tuple[int, int] = (0, 0), **connect: Any) -> None:
        self.version = version
        self.messages: queue.Queue[Frame] = queue.Queue()
        self.errors: queue.Queue[Frame] = queue.Queue()
        self.disconnected = threading.Event()
        self.heard: dict[str, str] = {}  #: headers of CONNECTED
        self.heart_beats = 0
        self._receipts: dict[str, threading.Event] = {}
        options = {} if version == "1.0" else {"heartbeats": heartbeats}
        self.connection = CONNECTIONS[version]([("127.0.0.1", port)], reconnect_attempts_max=1, **options)
        self.connection.set_listener("test", self)
        self._connected = threading.Event()
        self.connection.connect(connect.pop("login", None), connect.pop("passcode", None), wait=True, headers=connect)
        assert self._connected.wait(PATIENCE)

    # -- what stomp.py calls

    def on_connected(self, frame: Frame) -> None:
        self.heard = frame.headers
        self._connected.set()

    def on_message(self, frame: Frame) -> None:
        self.messages.put(frame)

    def on_error(self, frame: Frame) -> None:
        self.errors.put(frame)
        self._arrived(frame.headers.get("receipt-id"))

    def on_receipt(self, frame: Frame) -> None:
        self._arrived(frame.headers["receipt-id"])

    def on_heartbeat(self) -> None:
        self.heart_beats += 1

    def on_disconnected(self) -> None:
        self.disconnected.set()
        for each in self._receipts.values():
            each.set()

    def _arrived(self, receipt: str | None) -> None:
        if receipt in self._receipts:
            self._receipts[receipt].set()

    # -- what tests call

    def _with_receipt(self, headers: dict[str, str], wait: bool) -> str | None:
        if not wait:
            return None
        receipt = headers["receipt"] = f"r{next(_numbers)}"
        self._receipts[receipt] = threading.Event()
        return receipt

    def _wait(self, receipt: str | None) -> None:
        if receipt is not None:
            assert self._receipts[receipt].wait(PATIENCE), f"no receipt {receipt}"
            del self._receipts[receipt]

    def frame(self, command: str, wait: bool = True, body: str | bytes = "", **headers: str) -> None:
        """Send any frame, and wait for its receipt."""
        receipt = self._with_receipt(headers, wait)
        self.connection.send_frame(command, headers, body)
        self._wait(receipt)

    def send(self, destination: str, body: str | bytes = "", wait: bool = True, **headers: str) -> None:
        """SEND. Header names may be written with _ for -, but for those in capital letters."""
        headers = {name if name.isupper() else name.replace("_", "-"): value for name, value in headers.items()}
        receipt = self._with_receipt(headers, wait)
        self.connection.send(destination, body, headers=headers)
        self._wait(receipt)

    def subscribe(
        self, destination: str, id: str = "s", ack: str = "auto", prefetch: int | None = None, wait: bool = True,
        **headers: str,
    ) -> None:  # fmt: skip
        """Send SUBSCRIBE, and wait for its receipt."""
        if prefetch is not None:
            headers["activemq.prefetchSize"] = str(prefetch)
        receipt = self._with_receipt(headers, wait)
        self.connection.subscribe(destination, id, ack, headers)
        self._wait(receipt)

    def unsubscribe(self, id: str = "s", **headers: str) -> None:
        """Send UNSUBSCRIBE, and wait for its receipt."""
        receipt = self._with_receipt(headers, True)
        self.connection.unsubscribe(id, headers=headers)
        self._wait(receipt)

    def ack(self, message: Frame, wait: bool = True, **headers: str) -> None:
        """ACK as the version has it."""
        self._settle("ACK", message, wait, headers)

    def nack(self, message: Frame, wait: bool = True, **headers: str) -> None:
        """NACK as the version has it."""
        self._settle("NACK", message, wait, headers)

    def _settle(self, command: str, message: Frame, wait: bool, headers: dict[str, str]) -> None:
        if self.version == "1.2":
            headers["id"] = message.headers["ack"]
        else:
            headers["message-id"] = message.headers["message-id"]
            if self.version == "1.1":
                headers["subscription"] = message.headers["subscription"]
        self.frame(command, wait, **headers)

    def take(self, count: int = 1) -> list[Frame]:
        """Take the next messages, in order of arrival."""
        return [self.messages.get(timeout=PATIENCE) for _ in range(count)]

    def bodies(self, count: int = 1) -> list[str]:
        """Take the next messages and return their bodies."""
        return [message.body for message in self.take(count)]

    def error(self) -> Frame:
        """Take the next ERROR frame."""
        return self.errors.get(timeout=PATIENCE)

    def round_trip(self) -> None:
        """When this returns, all that the broker wrote to this client before has arrived."""
        self.send("/topic/nobody.listens", "")

    def has_no_more(self) -> bool:
        """Whether nothing is left of what the broker wrote to this client so far."""
        self.round_trip()
        return self.messages.empty()

    def leave(self) -> None:
        """DISCONNECT, and wait for the receipt."""
        receipt = f"r{next(_numbers)}"
        self._receipts[receipt] = threading.Event()
        self.connection.disconnect(receipt=receipt)
        self._wait(receipt)

    def break_off(self) -> None:
        """Cut the connection without DISCONNECT."""
        transport = self.connection.transport
        if transport.socket is not None:
            transport.socket.shutdown(socket.SHUT_RDWR)
        assert self.disconnected.wait(PATIENCE)


class RawClient:
    """A socket that speaks exactly what it is told."""

    def __init__(
        self, port: int, version: str | None = "1.2", receive_buffer: int | None = None,
        tls: ssl.SSLContext | None = None, **headers: str,
    ) -> None:  # fmt: skip
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(("127.0.0.1", port))
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self._parser = frames.FrameParser()
        self._frames: Iterator[frames.Frame] = iter(())
        if version is not None:
            self.tell("CONNECT", {"accept-version": version, "host": "here", **headers})
            self.connected = self.hear()
            assert self.connected.command == "CONNECTED", self.connected
            self._parser.version = version

    def write(self, data: bytes) -> None:
        """Write these bytes to the socket."""
        self.socket.sendall(data)

    def tell(self, command: str, headers: dict[str, str] | None = None, body: bytes = b"") -> None:
        """Write a frame to the socket."""
        self.write(frames.encode(command, headers or {}, body))

    def hear(self) -> frames.Frame:
        """Return the next frame; ConnectionError when the broker closed the connection instead."""
        while True:
            for frame in self._frames:
                return frame
            data = self.socket.recv(1 << 16)
            if not data:
                raise ConnectionError("the broker closed the connection")
            self._frames = self._parser.feed(data)

    def is_closed(self) -> bool:
        """Wait until the broker closes the connection; frames before that are skipped."""
        try:
            while True:
                self.hear()
        except ConnectionError:
            return True

    def close(self) -> None:
        """Close the socket without DISCONNECT."""
        self.socket.close()
