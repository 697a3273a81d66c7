"""What can be asked of the recorded traffic, as pages and schedules ask it."""

from __future__ import annotations

from collections.abc import Mapping

from analytics.catalogue import ANALYSES, Analysis, analysis_for
from analytics.request import AnalysisRequest


def catalogue() -> list[Analysis]:
    """All analyses there are."""
    return list(ANALYSES.values())


def request_for(kind: str, given: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The title of the analysis and its parameters, with defaults for what is not given. Raises RequestRefused."""
    analysis = analysis_for(AnalysisRequest.from_dict({"kind": kind}))
    parameters = {each.name: given.get(each.name) or each.default for each in analysis.parameters}
    AnalysisRequest.from_dict({"kind": kind, **parameters})
    return analysis.title, parameters


def words_for(kind: str, parameters: Mapping[str, str]) -> str:
    """The parameters as a person would say them: `last hour`."""
    if kind not in ANALYSES:
        return ", ".join(parameters.values())
    labels = {each.name: dict(each.choices) for each in ANALYSES[kind].parameters}
    return ", ".join(labels.get(name, {}).get(value, value) for name, value in parameters.items() if name != "kind")
