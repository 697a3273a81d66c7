"""The table of analyses: what can be asked, in words, and which job answers it. No pyspark: pages read it too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analytics.requests.parameters import (
    CONSUMER,
    DAY,
    DAYS,
    DESTINATION,
    DRAFT,
    LIMIT,
    PERCENTILE,
    QUIET,
    REVISION,
    WEEKS,
    WINDOW,
    Parameter,
)
from analytics.requests.request import AnalysisRequest
from brokerapp.errors import RequestRefused

#: Groups of questions, in the order in which pages show them.
FLOW, PACE, TROUBLE, NEED = "What flows", "How fast it goes", "What goes wrong", "What is of no use"
GROUPS = (FLOW, PACE, TROUBLE, NEED)


@dataclass(frozen=True, slots=True)
class AnalysisDefinition:
    """One question and the module (analytics.jobs.*) that answers it."""

    kind: str
    title: str
    question: str
    module: str
    parameters: tuple[Parameter, ...] = ()
    group: str = FLOW  #: "": it is not asked by itself, but from the page of what it is about
    reads_routing: bool = False  #: whether the request must bring the definitions in force
    stays_within: bool = False  #: whether its result names nothing beyond the destination that it is asked about
    version: int = 1  #: of the analysis: raised when the same traffic gives other numbers than before

    def values(self, given: Mapping[str, Any]) -> dict[str, str]:
        """Every parameter with what was given for it, or its default; raises RequestRefused."""
        return {each.name: each.value(given.get(each.name)) for each in self.parameters}


def _table(*analyses: AnalysisDefinition) -> dict[str, AnalysisDefinition]:
    return {each.kind: each for each in analyses}


ANALYSES = _table(
    AnalysisDefinition(
        "traffic",
        "Traffic by destination",
        "How much is sent to each destination, how many copies come, how much leaves, and how long do consumers take?",
        "analytics.jobs.traffic",
        (WINDOW, DESTINATION),
        FLOW,
        stays_within=True,
        version=3,
    ),
    AnalysisDefinition(
        "weeks",
        "Beside the same weekday",
        "What is more, and what is less, than in the same hours of the weeks before?",
        "analytics.jobs.week_comparison",
        (DAY, WEEKS, DESTINATION),
        FLOW,
        stays_within=True,
    ),
    AnalysisDefinition(
        "league",
        "Producers and consumers",
        "Who sends most, and who takes most?",
        "analytics.jobs.client_ranking",
        (WINDOW, DESTINATION),
        FLOW,
        stays_within=True,
    ),
    AnalysisDefinition(
        "fan-out",
        "Fan-out",
        "How many copies, and how many bytes, come of each message sent to a virtual or composite destination?",
        "analytics.jobs.fan_out",
        (WINDOW, DESTINATION),
        FLOW,
        reads_routing=True,
    ),
    AnalysisDefinition(
        "latency",
        "Time to the ack",
        "How long does it take until messages are acknowledged, by queue and by consumer?",
        "analytics.jobs.latency",
        (WINDOW, DESTINATION, CONSUMER, PERCENTILE),
        PACE,
        stays_within=True,
        version=2,
    ),
    AnalysisDefinition(
        "depth",
        "Depth and forecast",
        "How many messages waited, when will they be gone, and when is a limit reached?",
        "analytics.jobs.depth",
        (WINDOW, DESTINATION, LIMIT),
        PACE,
        reads_routing=True,
        version=3,
        stays_within=True,
    ),
    AnalysisDefinition(
        "skew",
        "Skew between consumers",
        "Do the consumers of a queue share its messages evenly?",
        "analytics.jobs.consumer_balance",
        (WINDOW, DESTINATION),
        PACE,
        stays_within=True,
        version=2,
    ),
    AnalysisDefinition(
        "health",
        "Slow, idle and stuck consumers",
        "Who holds messages for long, who finishes none, and who gets none?",
        "analytics.jobs.consumer_health",
        (WINDOW, DESTINATION, QUIET),
        PACE,
        stays_within=True,
        version=2,
    ),
    AnalysisDefinition(
        "dead-letters",
        "Causes of dead letters",
        "What do messages fail of, where, and with which consumers?",
        "analytics.jobs.dead_letters",
        (WINDOW, DESTINATION),
        TROUBLE,
        stays_within=True,
        version=2,
    ),
    AnalysisDefinition(
        "repeats",
        "Redelivery and duplicates",
        "Which messages came back, and which were processed more than once, also by another broker?",
        "analytics.jobs.redeliveries",
        (WINDOW, DESTINATION),
        TROUBLE,
        stays_within=True,
        version=3,
    ),
    AnalysisDefinition(
        "filters",
        "Filter hit rate",
        "What part of the messages does each leg take, and which legs and selectors never match?",
        "analytics.jobs.filter_hit_rate",
        (WINDOW, DESTINATION),
        NEED,
        reads_routing=True,
    ),
    AnalysisDefinition(
        "orphans",
        "Orphans",
        "Which destinations does nobody read, which queues see no ack, which definitions never matched?",
        "analytics.jobs.unused_routing",
        (DAYS,),
        NEED,
        reads_routing=True,
    ),
    AnalysisDefinition(
        "whatif",
        "Try on recorded traffic",
        "Where would recorded messages have gone, had a draft of the routing been in force?",
        "analytics.jobs.whatif",
        (WINDOW, DRAFT, REVISION),
        group="",
        version=4,
    ),
)


def analysis_for(request: AnalysisRequest) -> AnalysisDefinition:
    """The analysis that is asked for; raises RequestRefused when there is none, or a parameter is not as it must be."""
    if request.kind not in ANALYSES:
        raise RequestRefused(f"{request.kind!r} is not an analysis: expected one of {', '.join(ANALYSES)}")
    analysis = ANALYSES[request.kind]
    if unknown := sorted(set(request.parameters) - {each.name for each in analysis.parameters}):
        raise RequestRefused(f"the analysis {request.kind!r} has no parameter {', '.join(unknown)}")
    analysis.values({"window": request.window, **request.parameters})
    return analysis


def by_group() -> list[tuple[str, list[AnalysisDefinition]]]:
    """All analyses under their groups."""
    return [(group, [each for each in ANALYSES.values() if each.group == group]) for group in GROUPS]
