"""The table of analyses: what can be asked, in words, and which job answers it. No pyspark: pages read it too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analytics.parameters import DESTINATION, DRAFT, REVISION, WINDOW, Parameter
from analytics.request import AnalysisRequest
from brokerapp.errors import RequestRefused

#: Groups of questions, in the order in which pages show them.
FLOW, PACE, TROUBLE, NEED = "What flows", "How fast it goes", "What goes wrong", "What is of no use"
GROUPS = (FLOW, PACE, TROUBLE, NEED)


@dataclass(frozen=True, slots=True)
class Analysis:
    """One question and the module (analytics.jobs.*) that answers it."""

    kind: str
    title: str
    question: str
    module: str
    parameters: tuple[Parameter, ...] = ()
    group: str = FLOW  #: "": it is not asked by itself, but from the page of what it is about
    reads_routing: bool = False  #: whether the request must bring the definitions in force
    version: int = 1  #: of the definition: raised when the same traffic gives other numbers than before

    def values(self, given: Mapping[str, Any]) -> dict[str, str]:
        """Every parameter with what was given for it, or its default; raises RequestRefused."""
        return {each.name: each.value(given.get(each.name)) for each in self.parameters}


def _table(*analyses: Analysis) -> dict[str, Analysis]:
    return {each.kind: each for each in analyses}


ANALYSES = _table(
    Analysis(
        "traffic",
        "Traffic by destination",
        "How much arrives at each destination, how much leaves it, and how long do consumers take?",
        "analytics.jobs.traffic",
        (WINDOW, DESTINATION),
        FLOW,
    ),
    Analysis(
        "whatif",
        "Try on recorded traffic",
        "Where would recorded messages have gone, had a draft of the routing been in force?",
        "analytics.jobs.whatif",
        (WINDOW, DRAFT, REVISION),
        group="",
    ),
)


def analysis_for(request: AnalysisRequest) -> Analysis:
    """The analysis that is asked for; raises RequestRefused when there is none, or a parameter is not as it must be."""
    if request.kind not in ANALYSES:
        raise RequestRefused(f"{request.kind!r} is not an analysis: expected one of {', '.join(ANALYSES)}")
    analysis = ANALYSES[request.kind]
    if unknown := sorted(set(request.parameters) - {each.name for each in analysis.parameters}):
        raise RequestRefused(f"the analysis {request.kind!r} has no parameter {', '.join(unknown)}")
    analysis.values(request.parameters)
    return analysis


def by_group() -> list[tuple[str, list[Analysis]]]:
    """All analyses under their groups."""
    return [(group, [each for each in ANALYSES.values() if each.group == group]) for group in GROUPS]
