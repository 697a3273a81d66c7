"""Stored messages as they are read back: whether they still are what was written. Pure.

Each carries a checksum of itself (message.py), but for those of versions that wrote none. What storage changed is not
delivered as if nothing had happened: it is marked, so that it becomes a dead letter.
"""

from __future__ import annotations

import zlib
from dataclasses import replace

from brokerapp.model.message import CHECKSUM, CHECKSUM_LENGTH, Message, decode_messages

#: The header by which a damaged message says that it is, wherever it is shown.
DAMAGED_HEADER = "sluice-damaged"
_MARK = f"{DAMAGED_HEADER}:true\n".encode()
#: Fields of the first line, the checksum among them.
_FIELDS = 8
#: How the headers of each stored message begin.
_HEAD = b"message-id:"


def load_stored(stored: bytes) -> Message:
    """The message of a stored form; one that is `damaged` has what can still be read of it."""
    try:
        if _is_intact(stored):
            return decode_messages((stored,))[0]
    except ValueError:  # it cannot even be read
        return _unreadable(stored)
    try:
        return _marked(decode_messages((stored,))[0])
    except ValueError:
        return _unreadable(stored)


def _is_intact(stored: bytes) -> bool:
    """Whether it has its checksum, or is of a version that wrote none; raises ValueError for what is no stored form."""
    end = stored.index(b"\n")
    at = end - CHECKSUM_LENGTH
    if at > 0 and stored.startswith(CHECKSUM, at):
        found = zlib.crc32(memoryview(stored)[end + 1 :], zlib.crc32(stored[:at]))
        return stored[at:end] == b"%b%08x" % (CHECKSUM, found)
    fields = stored[:end]
    return CHECKSUM not in fields and len(fields.split()) < _FIELDS and stored.startswith(_HEAD, end + 1)


def _marked(message: Message) -> Message:
    """The message as damaged; raises ValueError when its headers cannot be passed on."""
    lines = message.head.decode().split("\n")[:-1]
    if "\0" in message.head.decode() or not all(":" in line for line in lines):
        raise ValueError("these are not header lines")
    return replace(message, head=message.head + _MARK, _headers=None, is_damaged=True)


def _unreadable(stored: bytes) -> Message:
    """One of which only the bytes are left: they are its body."""
    id = f"ID:damaged:{zlib.crc32(stored):08x}"
    head = f"message-id:{id}\n".replace("ID:damaged:", "ID\\cdamaged\\c").encode()
    return Message(id, head + _MARK, stored, persistent=True, is_damaged=True)
