"""What can be asked of the recorded traffic, as pages and schedules ask it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analytics.catalogue import ANALYSES, Analysis, analysis_for
from analytics.request import AnalysisRequest
from brokerapp.definitions_json import to_json
from brokerapp.errors import StoreUnavailable
from console.gateway import gateway


def catalogue() -> list[Analysis]:
    """All analyses that can be asked by themselves."""
    return [each for each in ANALYSES.values() if each.group]


def request_for(kind: str, given: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The title of the analysis and its parameters, with defaults for what is not given. Raises RequestRefused."""
    analysis = analysis_for(AnalysisRequest.from_dict({"kind": kind}))
    parameters = {name: value for name, value in analysis.values(given).items() if value}
    AnalysisRequest.from_dict({"kind": kind, **parameters})
    return analysis.title, parameters


def with_routing(request: Mapping[str, Any]) -> dict[str, Any]:
    """The request with the definitions in force now, where the analysis asks for them and the broker answers."""
    analysis = ANALYSES.get(request["kind"])
    if analysis is None or not analysis.reads_routing:
        return dict(request)
    try:
        return {**request, "routing": to_json(gateway().definitions())}
    except StoreUnavailable:  # what needs no definitions is still found
        return dict(request)


def words_for(kind: str, parameters: Mapping[str, Any]) -> str:
    """The parameters as a person would say them: `last hour`. Definitions that are judged are no words."""
    parameters = {name: value for name, value in parameters.items() if isinstance(value, str)}
    if kind not in ANALYSES:
        return ", ".join(parameters.values())
    known = {each.name: each for each in ANALYSES[kind].parameters}
    return ", ".join(filter(None, (known[name].words(value) for name, value in parameters.items() if name in known)))
