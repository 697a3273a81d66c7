"""How tests are spread over processes: what shares a costly fixture stays together, what takes long begins first."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

#: Folders whose tests share something that takes seconds to start, in the order in which they should begin.
TOGETHER = ("tests/analytics/", "tests/e2e/", "tests/browser/", "tests/faults/", "tests/supervisor/")


def group_of(nodeid: str) -> str:
    """What a test runs in one process with: its folder, where that shares something costly, or else its module."""
    return next((folder for folder in TOGETHER if nodeid.startswith(folder)), nodeid.partition("::")[0])


def urgency(nodeid: str) -> int:
    """Where a test stands in the order: costly folders as they are listed, then the rest."""
    group = group_of(nodeid)
    return TOGETHER.index(group) if group in TOGETHER else len(TOGETHER)


class Spread(LoadScopeScheduling):
    """Hands out whole groups, in the order in which they were collected."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
