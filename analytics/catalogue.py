"""The table of analyses: what can be asked, in words, and which job answers it. No pyspark: pages read it too."""

from __future__ import annotations

from dataclasses import dataclass

from analytics.request import DEFAULT_WINDOW, AnalysisRequest
from brokerapp.errors import RequestRefused


@dataclass(frozen=True, slots=True)
class Parameter:
    """Something a request may say; `choices` are pairs of value and label."""

    name: str
    label: str
    default: str
    choices: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Analysis:
    """One question and the module (analytics.jobs.*) that answers it."""

    kind: str
    title: str
    question: str
    module: str
    parameters: tuple[Parameter, ...] = ()
    version: int = 1  #: of the definition: raised when the same traffic gives other numbers than before


WINDOW = Parameter(
    "window",
    "Window",
    DEFAULT_WINDOW,
    (
        ("15m", "last 15 minutes"),
        ("1h", "last hour"),
        ("6h", "last 6 hours"),
        ("24h", "last 24 hours"),
        ("7d", "last 7 days"),
    ),
)

ANALYSES = {
    each.kind: each
    for each in (
        Analysis(
            "traffic",
            "Traffic by destination",
            "How much arrives at each destination, how much leaves it, and how long do consumers take?",
            "analytics.jobs.traffic",
            (WINDOW,),
        ),
    )
}


def analysis_for(request: AnalysisRequest) -> Analysis:
    """The analysis that is asked for; raises RequestRefused when there is none, or it has no such parameter."""
    if request.kind not in ANALYSES:
        raise RequestRefused(f"{request.kind!r} is not an analysis: expected one of {', '.join(ANALYSES)}")
    analysis = ANALYSES[request.kind]
    if unknown := sorted(set(request.parameters) - {each.name for each in analysis.parameters}):
        raise RequestRefused(f"the analysis {request.kind!r} has no parameter {', '.join(unknown)}")
    return analysis
