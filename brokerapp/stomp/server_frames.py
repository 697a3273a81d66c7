"""Answers: the frames that a client is sent, as the version of STOMP has them that was agreed on. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from brokerapp.errors import BrokerError
from brokerapp.model.message import unescape
from brokerapp.stomp.frames import QUOTES, encode

_TO_ESCAPE = re.compile(r"[\\:\n\r]")
_BETWEEN_RECEIPTS = "\n\n\0\nRECEIPT\nreceipt-id:"
#: Escapes, of which 1.1 does not know the one of the carriage return: it stands there as it is.
_ESCAPE = re.compile(rb"\\.")


class ServerFrames:
    """In one version."""

    def __init__(self, version: str) -> None:
        self.version, self._quote = version, QUOTES[version]

    def connected(self, headers: dict[str, str]) -> bytes:
        """That a CONNECT was accepted."""
        return encode("CONNECTED", headers, version=self.version)

    def receipts(self, ids: Sequence[str]) -> bytes:
        """A RECEIPT for each."""
        if self.version != "1.0" and _TO_ESCAPE.search("".join(ids)):
            ids = [self._quote(id) for id in ids]
        return f"RECEIPT\nreceipt-id:{_BETWEEN_RECEIPTS.join(ids)}\n\n\0\n".encode()

    def error(self, error: BrokerError, receipt: str | None = None) -> bytes:
        """An ERROR that says what was wrong, in one sentence, with the error's stable code."""
        return error_frame(error, receipt, self.version)

    def end_of_browse(self, destination: str, subscription: str | None) -> bytes:
        """What tells a browser that it has seen all."""
        return self.message_prefix(destination, subscription) + b"message-id:0\nbrowser:end\n\n\0\n"

    def message_prefix(self, destination: str, subscription: str | None) -> bytes:
        """The first lines of the MESSAGE frames a subscription gets from a destination; 1.0 may have given no id."""
        quote = self._quote
        named = "" if subscription is None else f"subscription:{quote(subscription)}\n"
        return f"MESSAGE\ndestination:{quote(destination)}\n{named}".encode()

    def header(self, name: str, value: str) -> bytes:
        """One more header line of a MESSAGE."""
        return f"{name}:{self._quote(value)}\n".encode()

    def translate_head(self, head: bytes) -> bytes:
        """A message's stored header lines, which are written as 1.2 has them, as this version has them."""
        if self.version == "1.2" or b"\\" not in head:
            return head
        if self.version == "1.1":
            return _ESCAPE.sub(lambda found: b"\r" if found[0] == b"\\r" else found[0], head)
        pairs = (line.partition(":") for line in head.decode().split("\n") if line)
        quote = self._quote
        return "".join(f"{quote(unescape(name))}:{quote(unescape(value))}\n" for name, _, value in pairs).encode()


def error_frame(error: BrokerError, receipt: str | None, version: str) -> bytes:
    """An ERROR."""
    text = str(error)
    headers = {"message": text, "code": error.code, "content-type": "text/plain"}
    if receipt is not None:
        headers["receipt-id"] = receipt
    return encode("ERROR", headers, text.encode(), version=version)
