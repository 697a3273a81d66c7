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


def detect_protocol(beginning: bytes) -> str | None:
    """Return the protocol that a connection which begins so speaks; None: it may be STOMP."""
    return next((name for name, pattern in _BEGINNINGS.items() if pattern.match(beginning)), None)


def is_openwire(beginning: bytes | bytearray) -> bool:
    """Return whether a peer that begins so speaks OpenWire."""
    return _BEGINNINGS["OpenWire"].match(beginning) is not None
