"""Check whether an operator still has to say what a restored broker is: nothing starts on it before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from brokerapp.backup.data_folder import read_mark
from brokerapp.checks.results import Finding
from brokerapp.errors import BackupRefused
from brokerapp.store.client.keys import StoreKeys
from brokerapp.store.client.probe import probe_server
from brokerapp.store.restored_mark import HOW_TO_DECIDE, RestoredMark, RestoredRole


@dataclass(frozen=True, slots=True)
class RestoredReading:
    """The marks of a restore in the data folder and in the store; `problem` says why one cannot be read."""

    marks: tuple[RestoredMark, ...] = ()
    problem: str = ""


def measure_restored(data: Path, store_url: str, broker: str) -> RestoredReading:
    """Read the mark of the data folder, and of the store if there is a URL. One that does not answer has none."""
    keys, found = StoreKeys(broker), []
    try:
        found.append(read_mark(data))
        if store_url:
            for text in probe_server(store_url, keys.state, [("GET", keys.restored)]).answers:
                found.append(RestoredMark.from_json(text) if text else None)
    except BackupRefused as error:
        return RestoredReading(problem=str(error))
    except (ValueError, TypeError, KeyError) as error:
        return RestoredReading(problem=f"the mark of a restore in the store cannot be read: {error}")
    return RestoredReading(tuple(dict.fromkeys(mark for mark in found if mark is not None)))


def judge_restored(found: RestoredReading) -> Iterator[Finding]:
    """Judge whether nodes may start: not on a restore that did not end, or that nobody decided about."""
    if found.problem:
        yield Finding.failure(f"{found.problem[0].upper()}{found.problem[1:]}.", "Restore the backup again.")
    elif refused := next((mark for mark in found.marks if mark.refusal), None):
        if refused.role is RestoredRole.INCOMPLETE:
            yield Finding.failure(
                f"This broker was not completely {refused.origin}: nothing starts on it.", "Run the restore again."
            )
        else:
            yield Finding.failure(
                f"This broker was {refused.origin}, and it is not decided yet whether it replaces the original or "
                "is a copy of it: nothing starts on it.",
                f"{HOW_TO_DECIDE[0].upper()}{HOW_TO_DECIDE[1:]}.",
            )
    elif found.marks:
        yield Finding.ok(
            f"This broker is a copy, {found.marks[0].origin}: it does nothing in the name of the original."
        )
    else:
        yield Finding.ok("Nothing has to be decided: this broker was not restored, or acts as the original.")
