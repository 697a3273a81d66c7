"""Detects clients of protocols that a connector does not serve by the first bytes they send. Pure."""

from __future__ import annotations

import re

#: Protocol -> how a connection begins: OpenWire with the length of its first command, WireFormatInfo, and its magic.
_BEGINNINGS = {
    "OpenWire": re.compile(rb".{4}\x01ActiveMQ", re.DOTALL),
    "AMQP": re.compile(rb"AMQP[\x00-\x03]"),
    "MQTT": re.compile(rb"\x10.{1,4}\x00(\x04MQTT|\x06MQIsdp)", re.DOTALL),
    "TLS": re.compile(rb"\x16\x03[\x00-\x04]"),
}
#: Seconds after which the log tells of the same clients again: many try to connect again at once, and for ever.
REPORT_INTERVAL_SECONDS = 60.0
#: Addresses that are remembered for that.
MAX_REMEMBERED = 1000


def detect_protocol(beginning: bytes) -> str | None:
    """Return the protocol that a connection which begins so speaks; None: it may be STOMP."""
    return next((name for name, pattern in _BEGINNINGS.items() if pattern.match(beginning)), None)


def is_openwire(beginning: bytes | bytearray) -> bool:
    """Return whether a peer that begins so speaks OpenWire."""
    return _BEGINNINGS["OpenWire"].match(beginning) is not None


class ForeignClientReports:
    """Limits how often the log reports clients of other protocols."""

    def __init__(self) -> None:
        self._at: dict[tuple[str, str], float] = {}

    def is_due(self, protocol: str, host: str, now: float) -> bool:
        """Return whether to report a client of this protocol and host now; then it counts as reported."""
        last = self._at.get((protocol, host))
        if last is not None and now - last < REPORT_INTERVAL_SECONDS:
            return False
        if len(self._at) >= MAX_REMEMBERED:
            self._at.clear()
        self._at[protocol, host] = now
        return True
