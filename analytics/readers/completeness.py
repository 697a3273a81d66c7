"""Track which files of the archive a result was read from, and which of them could not be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analytics.archive import manifest
from analytics.archive.manifest import SetAside
from analytics.model.wording import format_percent, join_names, pluralize, verb_form
from analytics.readers.snapshot import ArchiveView
from analytics.requests.request import TimeWindow

#: Files that a result names; of more it has the number.
MOST_NAMED = 20


@dataclass(slots=True)
class Completeness:
    """The files that one result was read from, and those that are missing; filled while its events are selected."""

    rows: dict[Path, int | None] = field(default_factory=dict)  #: events of the files that are read; None: unknown
    set_aside: dict[str, SetAside] = field(default_factory=dict)  #: files that are not read, by path
    lost_batches: int = 0

    def note(self, broker: str, view: ArchiveView, windows: Sequence[TimeWindow]) -> None:
        """Add the files that a view of a broker's archive has for these time ranges."""
        self.rows.update({file.path: view.rows.get(file.path) for file in view.files})
        self.set_aside.update({f"{broker}/{each.path}": each for each in view.set_aside if _overlaps(each, windows)})
        self.lost_batches = max(self.lost_batches, view.lost_batches)

    def verify(self) -> bool:
        """Compare the checksums of all files that were read; return whether one is newly found damaged."""
        hours = sorted({path.parent for path in self.rows})
        self.rows.clear()
        found = [manifest.verify(hour) for hour in hours]  # of all, not up to the first
        return any(found)

    def to_json(self) -> dict[str, Any]:
        """Return plain values for the stored result. `rows_missing` is null if the number is unknown."""
        aside = sorted(self.set_aside.items())
        missing = None if any(each.rows is None for _, each in aside) else sum(each.rows or 0 for _, each in aside)
        return {
            "complete": not aside and not self.lost_batches,
            "files": len(self.rows),
            "files_set_aside": len(aside),
            "rows_missing": missing,
            "lost_batches": self.lost_batches,
            "set_aside": [
                {"file": path, "reason": each.reason, "detail": each.detail, "rows": each.rows}
                for path, each in aside[:MOST_NAMED]
            ],
            "sentence": self._sentence(missing),
        }

    def _sentence(self, missing: int | None) -> str:
        """Describe the missing files and batches; "" when none are missing."""
        found = []
        if self.set_aside:
            count = len(self.set_aside)
            named = [f"{path} ({each.reason})" for path, each in sorted(self.set_aside.items())]
            found.append(
                f"{pluralize(count, 'file')} of the archive {verb_form(count, 'was', 'were')} not read"
                f"{self._share(missing)}: {join_names(named)}."
            )
        if self.lost_batches:
            count = self.lost_batches
            batches = pluralize(count, "batch", "batches")
            found.append(f"{batches} of events {verb_form(count, 'was', 'were')} lost before archiving.")
        return " ".join(found)

    def _share(self, missing: int | None) -> str:
        """Describe the share of missing events, by the files of the time range."""
        read = [each for each in self.rows.values() if each is not None]
        if missing is None or len(read) < len(self.rows) or not missing:
            return "" if missing == 0 else ", with an unknown number of events"
        share = missing / (missing + sum(read))
        return f", {format_percent(share)} of the recorded events ({missing:,})"


def _overlaps(file: SetAside, windows: Sequence[TimeWindow]) -> bool:
    """Return whether any of its events may lie in one of the time ranges."""
    if file.first_us is None or file.last_us is None:
        return True
    return any(each.since_us <= file.last_us and file.first_us < each.until_us for each in windows)
