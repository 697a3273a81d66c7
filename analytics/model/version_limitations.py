"""What traffic recorded by earlier versions of the broker does not tell, in words, for the analyses that would need it.

The columns of such files are read as those of today (files.py); what was not recorded cannot be made up. Pure.
"""

from __future__ import annotations

from brokerapp.tracing.schema import VERSION

_SENT = "messages of transactions that were rolled back count as sent"
_AUTO = "acknowledgements by the broker (ack:auto) seem to have taken no time"
_LEFT = "consumers that left are judged as if they were there"
_MOVED = "depths count what operators moved until the next minute"
_TOPICS = "what subscribers of topics missed because it expired counts only where it became a dead letter"
#: Of each kind of analysis, what is not as it should be of events before version 4.
_BEFORE_4 = {
    "traffic": (_SENT, _AUTO), "weeks": (_SENT,), "league": (_SENT,), "fan-out": (_SENT,), "filters": (_SENT,),
    "latency": (_AUTO,), "depth": (_LEFT, _MOVED), "health": (_LEFT,), "dead-letters": (_TOPICS,),
    "whatif": (_SENT, _MOVED),
}  # fmt: skip


def limitation_notes(kind: str, oldest: int | None) -> tuple[str, ...]:
    """The note for an analysis of this kind whose oldest events have this version; none where nothing is missing."""
    missing = _BEFORE_4.get(kind, ()) if oldest is not None and oldest < VERSION else ()
    if not missing:
        return ()
    return (
        f"Part of this traffic was recorded by an earlier version of the broker. Of that part, {'; '.join(missing)}.",
    )
