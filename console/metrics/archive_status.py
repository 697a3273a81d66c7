"""Summarize the archive of recorded traffic for pages: how far it reaches, and which events were lost."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime

from django.conf import settings

from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.integrity import set_aside
from analytics.archive.manifest import SetAside

#: Seconds behind now after which one is told that the archiver does not keep up, or does not run.
LATE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class ArchiveStatus:
    """The archive of this broker."""

    events: int
    lost_batches: int  #: that the store let go before they were archived; of about 16,000 events, fewer when quiet
    unreadable_batches: int
    as_of: datetime | None  #: everything before is archived
    set_aside: list[SetAside]  #: files that are damaged, missing or foreign, and not read

    @property
    def is_late(self) -> bool:
        """Return whether much is not archived yet: the store keeps only the newest batches meanwhile."""
        return self.as_of is not None and time.time() - self.as_of.timestamp() > LATE_SECONDS


def archive_status() -> ArchiveStatus:
    """Read the status of the archive."""
    archive = BrokerArchive(settings.SLUICE.archive, settings.SLUICE.broker_name)
    commit, fresh_until_us = archive.commit, archive.fresh_until_us
    as_of = None if fresh_until_us is None else datetime.fromtimestamp(fresh_until_us / 1e6, UTC)
    aside = set_aside(archive.folder)
    return ArchiveStatus(commit.events, commit.lost_batches, commit.unreadable_batches, as_of, aside)
