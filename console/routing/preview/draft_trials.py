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
USUAL_WINDOW = "24h"
#: Earlier trials of a draft that are listed.
LISTED = 10
#: Columns by what they are called in results of the first version of the analysis, which are kept.
RENAMED = {"today": "in_force", "today_bytes": "in_force_bytes", "waiting_today": "waiting_recorded"}


def start(draft: Draft, window: str, asked_by: str) -> AnalysisRun:
    """Judge a draft as it stands. Raises DefinitionRefused when it cannot work, RequestRefused for a wrong window."""
    standing = draft_service.standing(draft.read(), gateway().definitions())
    if not standing.can_apply:
        reason = standing.problem or "somebody changed what it changes: decide the conflict first"
        raise DefinitionRefused(f"this draft cannot be tried: {reason}")
    return ask(standing.current, standing.proposed, window, asked_by, draft=str(draft.pk), revision=str(draft.revision))


def ask(current: Definitions, proposed: Definitions, window: str, asked_by: str, **about: str) -> AnalysisRun:
    """Judge definitions beside those in force."""
    parameters = ANALYSES[KIND].values({"window": window or USUAL_WINDOW, **about})
    trial = WhatIfRequest(current, proposed, gateway().circumstances(proposed))
    return run_service.start(KIND, ANALYSES[KIND].title, parameters, asked_by, trial=trial.to_json())


def of_draft(draft: Draft) -> list[AnalysisRun]:
    """The latest trials of a draft, newest first."""
    return list(AnalysisRun.objects.filter(kind=KIND, request__draft=str(draft.pk)).order_by("-created")[:LISTED])


@dataclass(frozen=True, slots=True)
class Shown:
    """What somebody may see of a trial's result; rows by the names of their columns."""

    totals: list[dict[str, Any]]  #: nothing for those who do not see every destination
    targets: list[dict[str, Any]]
    legs: list[dict[str, Any]]  #: each with its samples
    losses: list[dict[str, Any]]  #: samples of messages that reach nothing, or are refused
    plots: list[Plot]
    unseen: int  #: targets that are left out


def shown(result: Mapping[str, Any], sees: Sees) -> Shown:
    """The result without the places that somebody may not know of."""
    tables = {table["file"].removesuffix(".parquet"): list(_rows(table)) for table in result["tables"]}
    targets = [
        {
            **each,
            "change": number_format.difference(each["difference"], "messages"),
            "grown": number_format.difference(each["draft_bytes"] - each["in_force_bytes"], "bytes"),
        }
        for each in tables["targets"]
        if _seen(sees, each["target"])
    ]
    totals = [
        {**each, "change": number_format.difference(each["difference"], each["unit"])} for each in tables["totals"]
    ]
    samples: dict[str, list[dict[str, Any]]] = {}
    for each in tables["samples"]:
        if _seen(sees, each["destination"]):
            short = "…" + each["message"].rpartition(":")[2]
            samples.setdefault(each["what"], []).append({**each, "short": short})
    legs = [
        {**each, "samples": samples.get(f"leg {each['leg']}", []), "stays": _stays(each)}
        for each in tables["legs"]
        if _seen(sees, each["at"]) and _seen(sees, each["target"])
    ]
    losses = [each for what, found in samples.items() if not what.startswith("leg ") for each in found]
    names = {each["target"] for each in targets}
    plots = list(_plots(result, names))
    unseen = len(tables["targets"]) - len(targets)
    return Shown(totals if sees is everything else [], targets, legs, losses, plots, unseen)


def _rows(table: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    names = [RENAMED.get(column["name"], column["name"]) for column in table["columns"]]
    for row in table["rows"]:
        yield dict(zip(names, row, strict=True))


def _stays(leg: Mapping[str, Any]) -> str:
    """What a leg does that is about its own place, in words; "" for one that forwards."""
    if leg["at"] != leg["target"]:
        return ""
    return KEPT if Destination.parse(leg["at"]).is_queue else REACHES


def _seen(sees: Sees, name: str) -> bool:
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


def windows() -> tuple[tuple[str, str], ...]:
    """What can be chosen, and in words."""
    return WINDOW.choices
