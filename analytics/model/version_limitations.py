"""Notes on data that earlier broker versions did not record, by analysis.

The columns of such files are converted to today's (data_files.py); events that were not recorded are missing. Pure.
"""

from __future__ import annotations

from brokerapp.tracing.schema import VERSION

_SENT = "messages in rolled-back transactions count as sent"
_AUTO = "automatic acknowledgements (ack:auto) have a latency of 0"
_LEFT = "disconnected consumers count as connected"
_MOVED = "depths include messages moved by operators until the next minute"
_TOPICS = "messages that expired for topic subscribers count only if they were dead-lettered"
#: Kind of analysis -> limitations of events before version 4.
_BEFORE_4 = {
    "traffic": (_SENT, _AUTO), "weeks": (_SENT,), "league": (_SENT,), "fan-out": (_SENT,), "filters": (_SENT,),
    "latency": (_AUTO,), "depth": (_LEFT, _MOVED), "health": (_LEFT,), "dead-letters": (_TOPICS,),
    "whatif": (_SENT, _MOVED),
}  # fmt: skip


def limitation_notes(kind: str, oldest: int | None) -> tuple[str, ...]:
    """Return the note for an analysis whose oldest events have this version; none if nothing is missing."""
    missing = _BEFORE_4.get(kind, ()) if oldest is not None and oldest < VERSION else ()
    if not missing:
        return ()
    return (f"Part of this traffic was recorded by an earlier broker version. In that part, {', and '.join(missing)}.",)
