"""A STOMP client that sends the same questions to Sluice and ActiveMQ and records the answers."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from brokerapp.stomp.frames import Frame, encode
from tests.protocol.clients import RawClient

_numbers = itertools.count(1)
#: What `ask` returns when the broker closed the connection instead of answering.
CLOSED = "closed"


class Asker:
    """One connection. Every frame it sends asks for a receipt, and is answered before the next one."""

    def __init__(self, port: int, version: str, **headers: str) -> None:
        self.version, self.raw = version, RawClient(port, version, **headers)
        self.session = self.raw.connected.headers["session"]
        self.messages: list[Frame] = []  #: MESSAGE frames that came and were not taken yet

    def ask(self, command: str, body: bytes = b"", headers: Mapping[str, str] | None = None, **more: str) -> str:
        """Send a frame and return `RECEIPT`, `ERROR` or CLOSED. Header names may be written with _ for -."""
        receipt = f"r{next(_numbers)}"
        named = {name.replace("_", "-"): value for name, value in more.items()}
        self.tell(command, {**named, **(headers or {}), "receipt": receipt}, body)
        return self.answer(receipt)

    def tell(self, command: str, headers: Mapping[str, str], body: bytes = b"") -> None:
        """Send a frame as the version has it."""
        self.raw.write(encode(command, headers, body, self.version))

    def answer(self, receipt: str) -> str:
        """Wait for the answer to the frame with this receipt."""
        while True:
            try:
                frame = self.raw.hear()
            except ConnectionError:
                return CLOSED
            if frame.command == "MESSAGE":
                self.messages.append(frame)
            elif frame.headers.get("receipt-id") == receipt:
                return frame.command

    def send(self, destination: str, *bodies: str, **headers: str) -> None:
        """SEND persistent messages."""
        for body in bodies:
            assert self.ask("SEND", body.encode(), destination=destination, persistent="true", **headers) == "RECEIPT"

    def consume(self, destination: str, count: int, **headers: str) -> list[Frame]:
        """SUBSCRIBE with the id `s` and return the first messages."""
        self.tell("SUBSCRIBE", {"id": "s", "destination": destination, **headers})
        return self.take(count)

    def take(self, count: int) -> list[Frame]:
        """Return the next messages."""
        while len(self.messages) < count:
            frame = self.raw.hear()
            assert frame.command == "MESSAGE", frame
            self.messages.append(frame)
        taken, self.messages = self.messages[:count], self.messages[count:]
        return taken

    def settle(self, command: str, message: Frame, **more: str) -> str:
        """ACK or NACK a message as the version has it."""
        if self.version == "1.2":
            return self.ask(command, id=message.headers["ack"], **more)
        if self.version == "1.1":
            more = {"subscription": message.headers["subscription"], **more}
        return self.ask(command, headers={"message-id": message.headers["message-id"]}, **more)

    def close(self) -> None:
        """End the connection without DISCONNECT."""
        self.raw.close()
