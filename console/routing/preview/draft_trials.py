"""Trials: drafts judged by recorded traffic. A trial is a run of an analysis, which remembers what it judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from analytics.requests.catalogue import ANALYSES
from analytics.requests.parameters import WINDOW
from analytics.requests.whatif_request import WhatIfRequest
from brokerapp.errors import DefinitionRefused, InvalidDestination
from brokerapp.model.definitions import Definitions
from brokerapp.model.destination import Destination
from console.access.roles import Sees, everything
from console.analyses import run_service
from console.analyses.charts import Plot, link_targets
from console.analyses.models import AnalysisRun
from console.broker.gateway import gateway
from console.routing.drafts import draft_service
from console.routing.drafts.models import Draft
from console.routing.preview.route_preview import KEPT, REACHES
from console.ui.formatting import number_format

KIND = "whatif"
#: What is chosen when nobody chooses.
DEFAULT_WINDOW = "24h"
#: Earlier trials of a draft that are listed.
MAX_RUNS = 10
#: Columns by what they are called in results of the first version of the analysis, which are kept.
RENAMED = {"today": "in_force", "today_bytes": "in_force_bytes", "waiting_today": "waiting_recorded"}


def start_draft_run(draft: Draft, window: str, asked_by: str) -> AnalysisRun:
    """Judge a draft as it stands. Raises DefinitionRefused when it cannot work, RequestRefused for a wrong window."""
    standing = draft_service.status_of(draft.read_changes(), gateway().definitions())
    if not standing.can_apply:
        reason = standing.problem or "somebody changed what it changes: decide the conflict first"
        raise DefinitionRefused(f"this draft cannot be tried: {reason}")
    return start_run(
        standing.current, standing.proposed, window, asked_by, draft=str(draft.pk), revision=str(draft.revision)
    )


def start_run(current: Definitions, proposed: Definitions, window: str, asked_by: str, **about: str) -> AnalysisRun:
    """Judge definitions beside those in force."""
    parameters = ANALYSES[KIND].values({"window": window or DEFAULT_WINDOW, **about})
    trial = WhatIfRequest(current, proposed, gateway().circumstances(proposed))
    return run_service.start(KIND, ANALYSES[KIND].title, parameters, asked_by, trial=trial.to_json())


def runs_of_draft(draft: Draft) -> list[AnalysisRun]:
    """The latest trials of a draft, newest first."""
    return list(AnalysisRun.objects.filter(kind=KIND, request__draft=str(draft.pk)).order_by("-created")[:MAX_RUNS])


@dataclass(frozen=True, slots=True)
class VisibleResult:
    """What somebody may see of a trial's result; rows by the names of their columns."""

    totals: list[dict[str, Any]]  #: nothing for those who do not see every destination
    targets: list[dict[str, Any]]
    forward_targets: list[dict[str, Any]]  #: each with its samples
    unrouted: list[dict[str, Any]]  #: samples of messages that reach nothing, or are refused
    plots: list[Plot]
    hidden_targets: int  #: targets that are left out


def visible_result(result: Mapping[str, Any], sees: Sees) -> VisibleResult:
    """The result without the places that somebody may not know of."""
    tables = {table["file"].removesuffix(".parquet"): list(_rows(table)) for table in result["tables"]}
    targets = [
        {
            **each,
            "change": number_format.format_difference(each["difference"], "messages"),
            "grown": number_format.format_difference(each["draft_bytes"] - each["in_force_bytes"], "bytes"),
        }
        for each in tables["targets"]
        if _is_visible(sees, each["target"])
    ]
    totals = [
        {**each, "change": number_format.format_difference(each["difference"], each["unit"])}
        for each in tables["totals"]
    ]
    samples: dict[str, list[dict[str, Any]]] = {}
    for each in tables["samples"]:
        if _is_visible(sees, each["destination"]):
            short = "…" + each["message"].rpartition(":")[2]
            samples.setdefault(each["what"], []).append({**each, "short": short})
    legs = [
        {**each, "samples": samples.get(f"leg {each['leg']}", []), "stays": _local_result(each)}
        for each in tables["legs"]
        if _is_visible(sees, each["at"]) and _is_visible(sees, each["target"])
    ]
    losses = [each for what, found in samples.items() if not what.startswith("leg ") for each in found]
    names = {each["target"] for each in targets}
    plots = list(_plots(result, names))
    unseen = len(tables["targets"]) - len(targets)
    return VisibleResult(totals if sees is everything else [], targets, legs, losses, plots, unseen)


def _rows(table: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    names = [RENAMED.get(column["name"], column["name"]) for column in table["columns"]]
    for row in table["rows"]:
        yield dict(zip(names, row, strict=True))


def _local_result(leg: Mapping[str, Any]) -> str:
    """What a leg does that is about its own place, in words; "" for one that forwards."""
    if leg["at"] != leg["target"]:
        return ""
    return KEPT if Destination.parse(leg["at"]).is_queue else REACHES


def _is_visible(sees: Sees, name: str) -> bool:
    try:
        return sees is everything or sees(Destination.parse(name))
    except InvalidDestination:
        return False


def _plots(result: Mapping[str, Any], names: set[str]) -> Iterator[Plot]:
    """The charts with the lines of these targets, which lead to them; those in which any is left."""
    opens = link_targets((("destination", name) for name in names), result["window"])
    for number, chart in enumerate(result["charts"]):
        figure = {**chart["figure"], "data": [each for each in chart["figure"]["data"] if each["legendgroup"] in names]}
        if figure["data"]:
            yield Plot(f"figure-{number}", chart["title"], figure, opens)


def time_ranges() -> tuple[tuple[str, str], ...]:
    """What can be chosen, and in words."""
    return WINDOW.choices
