"""ServerFrames: writes the frames of the server in the agreed version of STOMP. Pure."""

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
    """Writes the frames of the server in one version of STOMP."""

    def __init__(self, version: str) -> None:
        self.version, self._quote = version, QUOTES[version]

    def connected(self, headers: dict[str, str]) -> bytes:
        """Return the CONNECTED frame that accepts a CONNECT."""
        return encode("CONNECTED", headers, version=self.version)

    def receipts(self, ids: Sequence[str]) -> bytes:
        """Return a RECEIPT frame for each id."""
        if self.version != "1.0" and _TO_ESCAPE.search("".join(ids)):
            ids = [self._quote(id) for id in ids]
        return f"RECEIPT\nreceipt-id:{_BETWEEN_RECEIPTS.join(ids)}\n\n\0\n".encode()

    def error(self, error: BrokerError, receipt: str | None = None) -> bytes:
        """Return an ERROR frame with the error's message and stable code."""
        return error_frame(error, receipt, self.version)

    def end_of_browse(self, destination: str, subscription: str | None) -> bytes:
        """Return the MESSAGE frame that ends a browse."""
        return self.message_prefix(destination, subscription) + b"message-id:0\nbrowser:end\n\n\0\n"

    def message_prefix(self, destination: str, subscription: str | None) -> bytes:
        """Return the first lines of a subscription's MESSAGE frames; in 1.0 it may have no id."""
        quote = self._quote
        named = "" if subscription is None else f"subscription:{quote(subscription)}\n"
        return f"MESSAGE\ndestination:{quote(destination)}\n{named}".encode()

    def header(self, name: str, value: str) -> bytes:
        """Return one more header line of a MESSAGE frame."""
        return f"{name}:{self._quote(value)}\n".encode()

    def translate_head(self, head: bytes) -> bytes:
        """Return a message's stored header lines (written as in 1.2) as this version writes them."""
        if self.version == "1.2" or b"\\" not in head:
            return head
        if self.version == "1.1":
            return _ESCAPE.sub(lambda found: b"\r" if found[0] == b"\\r" else found[0], head)
        pairs = (line.partition(":") for line in head.decode().split("\n") if line)
        quote = self._quote
        return "".join(f"{quote(unescape(name))}:{quote(unescape(value))}\n" for name, _, value in pairs).encode()


def error_frame(error: BrokerError, receipt: str | None, version: str) -> bytes:
    """Return an ERROR frame with the error's message and code."""
    text = str(error)
    headers = {"message": text, "code": error.code, "content-type": "text/plain"}
    if receipt is not None:
        headers["receipt-id"] = receipt
    return encode("ERROR", headers, text.encode(), version=version)
