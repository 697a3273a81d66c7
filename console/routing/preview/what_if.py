"""What-if analysis: runs that replay recorded traffic against a draft, and their results for one user."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from analytics.requests.catalogue import ANALYSES
from analytics.requests.parameters import WINDOW
from analytics.requests.request import TimeWindow
from analytics.requests.whatif_request import WhatIfRequest
from brokerapp.errors import DefinitionRefused, InvalidDestination
from brokerapp.model.definitions import Definitions, VirtualTopic
from brokerapp.model.destination import Destination
from console.access.roles import Sees, everything
from console.analyses import run_service
from console.analyses.charts import Plot, link_targets
from console.analyses.models import AnalysisRun
from console.analyses.questions import describe_parameters, explicit_window, link_fields, request_for
from console.analyses.time_range_form import TimeRangeField, field_of_link
from console.broker.gateway import gateway
from console.metrics.charts_history import OF_WINDOW
from console.routing.definitions.definition_values import LABELS
from console.routing.definitions.publishing import propose
from console.routing.drafts.models import Draft
from console.routing.preview.route_preview import KEPT, REACHES
from console.ui.formatting import number_format

KIND = "whatif"
#: Default time range.
DEFAULT_WINDOW = "24h"
#: Runs of a draft that are listed.
MAX_RUNS = 10
#: Columns of results that were stored by the first version of the analysis, and their present names.
RENAMED = {"today": "in_force", "today_bytes": "in_force_bytes", "waiting_today": "waiting_recorded"}


def start_draft_run(draft: Draft, window: str, asked_by: str, explicit: TimeWindow | None = None) -> AnalysisRun:
    """Run a what-if analysis of a draft. Raises DefinitionRefused, RequestRefused for a wrong time range.

    An explicit time range takes the place of `window`, which ends now.
    """
    proposal = propose(draft.read_changes(), gateway().definitions())
    if not proposal.can_apply:
        reason = proposal.problem or "resolve its conflicts first"
        raise DefinitionRefused(f"the draft cannot be analyzed: {reason}")
    about = {"window": window, "draft": str(draft.pk), "revision": str(draft.revision)}
    return start_run(proposal.current, proposal.proposed, about, asked_by, explicit)


def start_run(
    current: Definitions,
    proposed: Definitions,
    given: Mapping[str, str],
    asked_by: str,
    explicit: TimeWindow | None = None,
) -> AnalysisRun:
    """Run a what-if analysis of proposed definitions, compared with the active ones."""
    title, parameters = request_for(KIND, {**given, "window": given.get("window") or DEFAULT_WINDOW}, explicit)
    trial = WhatIfRequest(current, proposed, gateway().routing_context(proposed))
    return run_service.start(KIND, title, parameters, asked_by, trial=trial.to_json())


def runs_of_draft(draft: Draft) -> list[AnalysisRun]:
    """Return the latest runs of a draft, newest first."""
    return list(AnalysisRun.objects.filter(kind=KIND, request__draft=str(draft.pk)).order_by("-created")[:MAX_RUNS])


def window_of(run: AnalysisRun) -> dict[str, Any]:
    """Return the time range of a run's request: its length, or its two ends."""
    return {name: run.request[name] for name in ("window", "since_us", "until_us") if name in run.request}


def describe_window(run: AnalysisRun) -> str:
    """Return the time range of a run in words: `Last hour`, or its two ends."""
    return describe_parameters(KIND, window_of(run))


def time_range_of(run: AnalysisRun | None, query: Mapping[str, str]) -> TimeRangeField:
    """Return the time range that the form begins with: that of a link, of the run that is shown, or the default."""
    given = dict(query.items()) if OF_WINDOW & set(query) else {"window": DEFAULT_WINDOW}
    if run is not None and not OF_WINDOW & set(query):
        explicit = explicit_window(run.request)
        given = {"window": run.request.get("window", DEFAULT_WINDOW)} if explicit is None else link_fields(explicit)
    return field_of_link(ANALYSES[KIND], given, time.time())


@dataclass(frozen=True, slots=True)
class VisibleResult:
    """The part of a result that a user may see; rows by the names of their columns."""

    totals: list[dict[str, Any]]  #: empty unless the user sees all destinations
    targets: list[dict[str, Any]]
    forward_targets: list[dict[str, Any]]  #: each with samples of messages
    unrouted: list[dict[str, Any]]  #: samples of messages without a target, or refused ones
    plots: list[Plot]
    hidden_targets: int  #: number of targets left out


def visible_result(result: Mapping[str, Any], sees: Sees) -> VisibleResult:
    """Return the result without the destinations that a user must not know."""
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
    forward_targets = [
        {
            **each,
            "samples": samples.get(f"leg {each['leg']}", []),
            "local_result": _local_result(each),
            "definition_name": _definition_name(each["definition"], sees),
        }
        for each in tables["legs"]
        if _is_visible(sees, each["at"]) and _is_visible(sees, each["target"])
    ]
    unrouted = [each for what, found in samples.items() if not what.startswith("leg ") for each in found]
    names = {each["target"] for each in targets}
    plots = list(_plots(result, names))
    hidden_targets = len(tables["targets"]) - len(targets)
    return VisibleResult(
        totals if sees is everything else [], targets, forward_targets, unrouted, plots, hidden_targets
    )


def _rows(table: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    names = [RENAMED.get(column["name"], column["name"]) for column in table["columns"]]
    for row in table["rows"]:
        yield dict(zip(names, row, strict=True))


def _local_result(target: Mapping[str, Any]) -> str:
    """Describe what happens to a message in the source destination itself; "" for a target that it is copied to."""
    if target["at"] != target["target"]:
        return ""
    return KEPT if Destination.parse(target["at"]).is_queue else REACHES


def _definition_name(id: str, sees: Sees) -> str:
    """Name the definition of a target: several may act at one destination, as a composite topic over a virtual topic.

    Where the user must not know its name, this is the kind of definition alone.
    """
    kind, _, name = id.partition(":")
    if kind not in LABELS:
        return id
    if kind == VirtualTopic.kind:
        name = name.rsplit("|", 2)[0]  # without the names of the consumer queues, which are part of its id
    destination = f"queue://{name}" if kind == "compositeQueue" else f"topic://{name}"
    return f"{LABELS[kind]} {name}" if name and _is_visible(sees, destination) else LABELS[kind]


def _is_visible(sees: Sees, name: str) -> bool:
    try:
        return sees is everything or sees(Destination.parse(name))
    except InvalidDestination:
        return False


def _plots(result: Mapping[str, Any], names: set[str]) -> Iterator[Plot]:
    """Yield the charts with the lines of these targets, without charts that would be empty."""
    opens = link_targets((("destination", name) for name in names), result["window"])
    for number, chart in enumerate(result["charts"]):
        figure = {**chart["figure"], "data": [each for each in chart["figure"]["data"] if each["legendgroup"] in names]}
        if figure["data"]:
            yield Plot(f"figure-{number}", chart["title"], figure, opens)


def time_ranges() -> tuple[tuple[str, str], ...]:
    """Return the time ranges to choose from, with their labels."""
    return WINDOW.choices
