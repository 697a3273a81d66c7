"""Parses the command and headers of a frame, within their limits. Pure; see frames.py."""

from __future__ import annotations

from typing import NamedTuple

from brokerapp.errors import ProtocolError
from brokerapp.model.message import ESCAPES, unescape

#: Longest first line and longest header line, bytes (ActiveMQ's limits).
MAX_COMMAND_BYTES = 1024
MAX_HEADER_LINE_BYTES = 10 * 1024
#: Most headers of one frame (ActiveMQ's limit).
MAX_HEADERS = 1000


class HeadLimits(NamedTuple):
    """What may stand before the body of a frame."""

    head: int  #: bytes after which a frame whose headers do not end is refused
    line: int  #: characters of a header line
    headers: int


CLIENT_LIMITS = HeadLimits(256 * 1024, MAX_HEADER_LINE_BYTES, MAX_HEADERS)
#: Bridges hand on what JMS clients sent, whose properties are headers here: 10,000, and 16 MiB before they are escaped.
BROKER_LIMITS = HeadLimits(64 * 1024 * 1024, 64 * 1024 * 1024, 12_000)

NUL_IN_HEAD = "a NUL inside the headers: the empty line before the body is missing"
#: Commands whose headers are taken literally.
LITERAL = frozenset({"CONNECT", "STOMP", "CONNECTED"})
#: Escapes by version: 1.1 has none for the carriage return, which may stand in its headers as it is.
KNOWN_ESCAPES = {"1.1": {pair: text for pair, text in ESCAPES.items() if text != "\r"}, "1.2": ESCAPES}


def read_head(
    head: bytes, version: str, limits: HeadLimits = CLIENT_LIMITS
) -> tuple[str, dict[str, str], tuple[str, ...]]:
    """Return the command, the headers, and the lines without a colon, of what stands before the empty line.

    Those lines are passed over: clients of ActiveMQ send some, and it does not refuse them. Raises ProtocolError.
    """
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        raise ProtocolError(f"the headers are not UTF-8: {error.reason}") from error
    if "\0" in text:
        raise ProtocolError(NUL_IN_HEAD)
    if "\r" in text:
        text = text.replace("\r\n", "\n").removesuffix("\r")
    lines = text.split("\n")
    command = lines[0]
    if len(head) > MAX_COMMAND_BYTES:
        _check_lines(lines, limits)
    known = KNOWN_ESCAPES[version] if version != "1.0" and command not in LITERAL and "\\" in text else None
    headers: dict[str, str] = {}
    without_colon: list[str] = []
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon:
            without_colon.append(line)
            continue
        if not name:
            raise ProtocolError(f"header line {line[:80]!r} has no name")
        if version == "1.0":
            name, value = name.strip(), value.strip()
        elif known is not None:
            name, value = unescape(name, known), unescape(value, known)
        headers.setdefault(name, value)
    return command.strip() if version == "1.0" else command, headers, tuple(without_colon)


def _check_lines(lines: list[str], limits: HeadLimits) -> None:
    if len(lines) - 1 > limits.headers:
        raise ProtocolError(f"{len(lines) - 1} headers: at most {limits.headers} are allowed")
    if len(lines[0]) > MAX_COMMAND_BYTES:
        raise ProtocolError(f"the command line exceeds {MAX_COMMAND_BYTES} bytes")
    for line in lines:
        if len(line) > limits.line:
            raise ProtocolError(f"header {line[:40]!r} exceeds {limits.line} bytes")
