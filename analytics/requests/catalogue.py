"""The table of analyses: title, description, parameters and job module of each. No pyspark: pages read it, too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analytics.requests.parameters import (
    CHART,
    CONSUMER,
    DAY,
    DAYS,
    DESTINATION,
    DRAFT,
    HISTORY,
    HORIZON,
    LIMIT,
    MEASURE,
    PERCENTILE,
    QUIET,
    REVISION,
    SQL_WINDOW,
    STATEMENT,
    WEEKS,
    WINDOW,
    Parameter,
)
from analytics.requests.request import AnalysisRequest, TimeWindow
from brokerapp.errors import RequestRefused

#: Groups of analyses, in the order in which pages show them.
FLOW, PACE, TROUBLE, NEED = "Traffic", "Latency and throughput", "Failures", "Unused resources"
#: The analysis that runs an SQL statement. What its user may see travels with each request.
SQL = "sql"
GROUPS = (FLOW, PACE, TROUBLE, NEED)


@dataclass(frozen=True, slots=True)
class AnalysisDefinition:
    """Describes one analysis: its texts, its parameters and the module (analytics.jobs.*) that computes it."""

    kind: str
    title: str
    question: str
    module: str
    parameters: tuple[Parameter, ...] = ()
    group: str = FLOW  #: "": not in the catalogue; started from another page
    reads_routing: bool = False  #: whether the request must include the active definitions
    stays_within: bool = False  #: whether its result names only the destination it was run for
    reads_tables: bool = False  #: whether tables suffice for it where events are no longer archived
    version: int = 1  #: raised when the same traffic gives different numbers

    def values(self, given: Mapping[str, Any]) -> dict[str, str]:
        """Return all parameters, with defaults for those not given. Raises RequestRefused."""
        return {each.name: each.value(given.get(each.name)) for each in self.parameters}

    def refuse_too_long(self, window: TimeWindow) -> None:
        """Raise RequestRefused for a time range that is longer than the analysis allows."""
        longest = next((each.longest_s for each in self.parameters if each.name == WINDOW.name), 0)
        if longest and window.seconds > longest:
            raise RequestRefused(
                f"the time range of “{self.title}” must be at most {longest // 86400} days long,"
                f" got {window.seconds / 86400:,.4g} days"
            )


def _table(*analyses: AnalysisDefinition) -> dict[str, AnalysisDefinition]:
    return {each.kind: each for each in analyses}


ANALYSES = _table(
    AnalysisDefinition(
        "traffic",
        "Traffic by destination",
        "Messages sent, stored, dispatched and acknowledged by destination, with acknowledgement latency.",
        "analytics.jobs.traffic",
        (WINDOW, DESTINATION),
        FLOW,
        stays_within=True,
        version=3,
        reads_tables=True,
    ),
    AnalysisDefinition(
        "weeks",
        "Week-over-week comparison",
        "Change against the same hours in previous weeks.",
        "analytics.jobs.week_comparison",
        (DAY, WEEKS, DESTINATION),
        FLOW,
        stays_within=True,
        reads_tables=True,
    ),
    AnalysisDefinition(
        "forecast",
        "Forecast and anomalies",
        "Expected traffic or depth of the next hours or days, and hours that were not as expected.",
        "analytics.jobs.forecasts.forecast",
        (HISTORY, MEASURE, HORIZON, DESTINATION),
        FLOW,
        stays_within=True,
        reads_tables=True,
    ),
    AnalysisDefinition(
        "league",
        "Producers and consumers",
        "Producers and consumers ranked by number of messages.",
        "analytics.jobs.client_ranking",
        (WINDOW, DESTINATION),
        FLOW,
        stays_within=True,
        reads_tables=True,
    ),
    AnalysisDefinition(
        "fan-out",
        "Fan-out",
        "Copies and bytes stored for each message sent to a virtual or composite destination.",
        "analytics.jobs.fan_out",
        (WINDOW, DESTINATION),
        FLOW,
        reads_routing=True,
        reads_tables=True,
    ),
    AnalysisDefinition(
        "latency",
        "Acknowledgement latency",
        "Time from enqueue to acknowledgement, by queue and by consumer.",
        "analytics.jobs.latency",
        (WINDOW, DESTINATION, CONSUMER, PERCENTILE),
        PACE,
        stays_within=True,
        version=2,
        reads_tables=True,
    ),
    AnalysisDefinition(
        "depth",
        "Depth and forecast",
        "Depth over time, with a forecast of when queues are empty or reach a limit.",
        "analytics.jobs.depth",
        (WINDOW, DESTINATION, LIMIT),
        PACE,
        reads_routing=True,
        version=3,
        stays_within=True,
        reads_tables=True,
    ),
    AnalysisDefinition(
        "lag",
        "Consumer lag",
        "Age of the oldest message, time behind and rates of queues and durable subscriptions.",
        "analytics.jobs.lag",
        (WINDOW, DESTINATION),
        PACE,
        stays_within=True,
    ),
    AnalysisDefinition(
        "skew",
        "Consumer skew",
        "How evenly competing consumers share the messages of a queue.",
        "analytics.jobs.consumer_balance",
        (WINDOW, DESTINATION),
        PACE,
        stays_within=True,
        version=2,
    ),
    AnalysisDefinition(
        "health",
        "Slow, idle and stuck consumers",
        "Consumers that process slowly, are stuck or receive no messages.",
        "analytics.jobs.consumer_health",
        (WINDOW, DESTINATION, QUIET),
        PACE,
        stays_within=True,
        version=2,
    ),
    AnalysisDefinition(
        "dead-letters",
        "Causes of dead letters",
        "Causes of failed messages, by destination and consumer.",
        "analytics.jobs.dead_letters",
        (WINDOW, DESTINATION),
        TROUBLE,
        stays_within=True,
        version=2,
        reads_tables=True,
    ),
    AnalysisDefinition(
        "repeats",
        "Redeliveries and duplicates",
        "Messages that were redelivered, and messages processed more than once, also by another broker.",
        "analytics.jobs.redeliveries",
        (WINDOW, DESTINATION),
        TROUBLE,
        stays_within=True,
        version=3,
    ),
    AnalysisDefinition(
        "filters",
        "Selector hit rate",
        "Share of messages that each target accepts, and selectors that never match.",
        "analytics.jobs.filter_hit_rate",
        (WINDOW, DESTINATION),
        NEED,
        reads_routing=True,
        reads_tables=True,
    ),
    AnalysisDefinition(
        "orphans",
        "Orphaned destinations",
        "Destinations without consumers, queues without acknowledgements, definitions that never matched.",
        "analytics.jobs.unused_routing",
        (DAYS,),
        NEED,
        reads_routing=True,
        reads_tables=True,
    ),
    AnalysisDefinition(
        "whatif",
        "What-if analysis",
        "Routes of recorded messages under a draft, compared with the active version.",
        "analytics.jobs.whatif",
        (WINDOW, DRAFT, REVISION),
        group="",
        version=4,
    ),
    AnalysisDefinition(
        SQL,
        "SQL query",
        "A statement over the views of recorded traffic.",
        "analytics.jobs.sql_query",
        (SQL_WINDOW, STATEMENT, *CHART),
        group="",
    ),
)


def analysis_for(request: AnalysisRequest) -> AnalysisDefinition:
    """Return the analysis of a request. Raises RequestRefused for an unknown kind or an invalid parameter."""
    if request.kind not in ANALYSES:
        raise RequestRefused(f"{request.kind!r} is not a known analysis: expected one of {', '.join(ANALYSES)}")
    analysis = ANALYSES[request.kind]
    if unknown := sorted(set(request.parameters) - {each.name for each in analysis.parameters}):
        raise RequestRefused(f"the analysis {request.kind!r} has no parameter {', '.join(unknown)}")
    analysis.values({"window": request.window, **request.parameters})
    if (explicit := request.explicit_window) is not None:
        analysis.refuse_too_long(explicit)
    return analysis


def by_group() -> list[tuple[str, list[AnalysisDefinition]]]:
    """Return all analyses in the catalogue, by group."""
    return [(group, [each for each in ANALYSES.values() if each.group == group]) for group in GROUPS]
