"""Convert ids of stream entries, `milliseconds-number`, to positions and back: integers in the same order."""

from __future__ import annotations

#: Before the first entry of a stream.
START = "0-0"
#: Upper bound of the entries of a stream within a millisecond.
_IN_A_MILLISECOND = 1 << 20


def position_of(id: str) -> int:
    """Return the id of an entry as an integer: what the column `entry` of the archive holds."""
    milliseconds, _, number = id.partition("-")
    return int(milliseconds) * _IN_A_MILLISECOND + int(number or 0)


def id_of(place: int) -> str:
    """Return the entry id for an integer that position_of made."""
    return "{}-{}".format(*divmod(place, _IN_A_MILLISECOND))
