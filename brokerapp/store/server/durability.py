"""Describes how the store's server may lose confirmed messages: without an fsync before each receipt, or after a
rollback; whether it lacks replicas that have to confirm them; and from which backup it was restored.

Derived from what the server reports (see ServerStatus.memory). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

#: What a server does with what it has taken, by its `fsync`; "always" is what a receipt promises.
_LOSSES = {
    "off": "keeps messages in memory only (appendonly no): all confirmed messages are lost when it stops",
    "no": "lets the system write to disk (appendfsync no): recently confirmed messages are lost in a crash",
    "everysec": "writes to disk once per second (appendfsync everysec): messages confirmed since are lost in a crash",
    "unknown": "does not report when it writes to disk: without appendfsync always, a crash loses confirmed messages",
}
REMEDY = (
    'set appendonly yes and appendfsync always there, or persistent="false" in the file if messages need not be kept'
)


def durability_loss(memory: Mapping[str, Any]) -> str:
    """Return which confirmed messages a crash may lose, as a clause; "" where none.

    `kept` in it is False where that is meant: the broker begins each time with an empty store.
    """
    if not memory.get("kept", True):
        return ""
    said = _LOSSES.get(memory.get("fsync", "always"))
    return f"the store's server {said}" if said else ""


def replica_shortage(memory: Mapping[str, Any]) -> str:
    """Return that fewer replicas follow the store than have to confirm a change, as a clause; "" where enough do."""
    found, wanted = memory.get("replicas", 0), memory.get("replicas_wanted", 0)
    return f"{found} of {wanted} replicas follow the store: receipts wait for the others" if found < wanted else ""


#: Milliseconds for which a rollback, or a restore, is reported.
REPORTED_MS = 24 * 3600 * 1000


def rollback_notice(memory: Mapping[str, Any], now_ms: int) -> str:
    """Return what a recent rollback of the store lost, as a sentence; "" where there was none."""
    if not memory.get("rollbacks") or now_ms - memory["rollback_ms"] > REPORTED_MS:
        return ""
    at = datetime.fromtimestamp(memory["rollback_ms"] / 1000, UTC)
    lost = memory["rollback_changes"]
    how_many = f"at least {lost:,} confirmed changes are" if lost > 1 else "confirmed changes are"
    return (
        f"The store was rolled back at {at:%H:%M:%S} UTC: {how_many} missing. Messages may be lost, or delivered again."
    )


def restore_notice(memory: Mapping[str, Any], now_ms: int) -> str:
    """Return from which backup the store was restored recently, as a sentence; "" where it was not."""
    if not memory.get("restored_ms") or now_ms - memory["restored_ms"] > REPORTED_MS:
        return ""
    restored, made = (datetime.fromtimestamp(memory[name] / 1000, UTC) for name in ("restored_ms", "backup_ms"))
    return f"Restored at {restored:%H:%M:%S} UTC from the backup of {made:%Y-%m-%d %H:%M:%S} UTC."
