"""How tests are spread over processes: what shares a costly fixture stays together, what takes long begins first."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

#: Groups of tests that are costly, in the order in which they should begin: the longest first, those that mostly wait
#: beside those that mostly compute. Each is a folder, or modules that share what takes seconds to start.
TOGETHER: tuple[tuple[str, ...], ...] = (
    # An installation, started as users start it: most of the time it waits.
    ("tests/e2e/",),
    # Six nodes that are killed and stand still: more than half of the time it waits.
    ("tests/chaos/",),
    # A console that is served, and a browser.
    ("tests/browser/",),
    # The session of Spark in the tests' own process: one, as it takes some ten seconds to start, and as long again
    # until what all analyses use is compiled. A module with the fixture `spark` belongs here: a test checks it.
    (
        "tests/analytics/whatif/test_whatif_replay.py",
        "tests/analytics/transforms/test_selector_column.py",
        "tests/analytics/test_analyses_and_duckdb.py",
        "tests/analytics/spark/test_data_source.py",
        "tests/analytics/readers/test_snapshot.py",
        "tests/analytics/archive/test_schema_versions.py",
        "tests/ledger/",
        "tests/analytics/tables/test_tables_and_events.py",
        "tests/analytics/tables/test_current_hours.py",
        "tests/analytics/archive/test_event_columns.py",
        "tests/analytics/sql/test_views.py",
        "tests/analytics/jobs/test_forecast.py",
        "tests/analytics/jobs/test_recorded_depths.py",
        "tests/analytics/test_numbers_of_clients.py",
        "tests/analytics/tables/test_measures.py",
        "tests/analytics/transforms/test_lag.py",
    ),
    # Brokers that are killed: in two parts, either of which is as long as what stands above.
    ("tests/faults/test_kill",),
    ("tests/faults/",),
    # Spark in processes of its own: a server with its worker; and later a cluster.
    ("tests/analytics/test_tasks.py",),
    ("tests/analytics/test_spark_cluster.py",),
    ("tests/supervisor/",),
)


def group_of(nodeid: str) -> str:
    """What a test runs in one process with: its costly group, by what stands first in it, or else its module."""
    return next((group[0] for group in TOGETHER if nodeid.startswith(group)), nodeid.partition("::")[0])


def urgency(nodeid: str) -> tuple[int, int]:
    """Where a test stands in the order: costly groups and their parts as they are listed, then the rest."""
    for place, group in enumerate(TOGETHER):
        for part, path in enumerate(group):
            if nodeid.startswith(path):
                return place, part
    return len(TOGETHER), 0


class Spread(LoadScopeScheduling):
    """Hands out whole groups, in the order in which they were collected."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
