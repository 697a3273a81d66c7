"""Places in a trace stream: the id of an entry, `milliseconds-number`, and the same as one integer that sorts alike."""

from __future__ import annotations

#: Before the first entry of a stream.
START = "0-0"
#: More entries than this within a millisecond no stream is given.
_IN_A_MILLISECOND = 1 << 20


def position_of(id: str) -> int:
    """Return the id of an entry as an integer: what the column `entry` of the archive holds."""
    milliseconds, _, number = id.partition("-")
    return int(milliseconds) * _IN_A_MILLISECOND + int(number or 0)


def id_of(place: int) -> str:
    """Return the entry id for an integer that position_of made."""
    return "{}-{}".format(*divmod(place, _IN_A_MILLISECOND))
