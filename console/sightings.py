"""What somebody may see of runs and their results who sees some destinations only.

A result that stays within destinations is for who sees these. Of others the tables are shown whose rows are each
about one destination, without the rows beyond; no sentence, chart or sum, which are about everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from analytics.catalogue import ANALYSES
from brokerapp.destination import ANY_REST, Destination
from brokerapp.errors import InvalidDestination, RequestRefused
from console.access import AnyUser, Verb, may, visible
from console.models import AnalysisRun
from console.rights import Scope, Sees, everything

ABOUT = "destination"


def places_of(question: Mapping[str, Any]) -> tuple[Destination, ...]:
    """What a question is about, as patterns: everything, unless its result names nothing beyond a destination."""
    analysis = ANALYSES.get(question["kind"])
    stays = analysis is not None and analysis.stays_within and question.get("destination")
    try:
        return Scope.parse(question["destination"] if stays else ANY_REST).destinations
    except InvalidDestination:  # what nobody can have a scope for
        return Scope(ANY_REST).destinations


def is_readable(user: AnyUser, run: AnalysisRun) -> bool:
    """Whether somebody sees all that a run is about."""
    return all(may(user, Verb.SEE, place) for place in places_of({**run.request, "kind": run.kind}))


def listed(user: AnyUser, runs: Iterable[AnalysisRun]) -> list[AnalysisRun]:
    """Runs as a list names them: without the sentences and the parameters that are not for this reader."""
    found = list(runs)
    if visible(user) is not everything:
        for run in found:
            if not is_readable(user, run):
                run.sentence, run.reason = "", ""
                run.request = {name: value for name, value in run.request.items() if name == "window"}
    return found


def require_legible(user: AnyUser, kind: str, parameters: Mapping[str, Any]) -> None:
    """Raise RequestRefused for a question of which whoever asks it could read nothing."""
    if ANALYSES[kind].cuts or all(may(user, Verb.SEE, place) for place in places_of({"kind": kind, **parameters})):
        return
    if ANALYSES[kind].stays_within:
        raise RequestRefused(f"{ANALYSES[kind].title} of everything is not for you: name a destination that you see")
    raise RequestRefused(f"{ANALYSES[kind].title} is about all destinations, and you see some: ask somebody else")


def is_cut(run: AnalysisRun) -> bool:
    """Whether those who see some destinations only are shown a part of what it finds."""
    return run.kind in ANALYSES and ANALYSES[run.kind].cuts


def cut(run: AnalysisRun, result: Mapping[str, Any], sees: Sees) -> dict[str, Any] | None:
    """The tables of a result that say something of each destination alone; None where there are none."""
    tables = [table for table in result["tables"] if _columns(table)]
    if not is_cut(run) or not tables:
        return None
    return {**result, "sentence": "", "charts": [], "notes": [], "tables": [_cut(table, sees) for table in tables]}


def _cut(table: Mapping[str, Any], sees: Sees) -> dict[str, Any]:
    """The table with the rows that may be seen, which `kept` tells from the others also in its file."""
    kept = {name: keeper(sees) for _, name in _columns(table)}
    rows = [row for row in table["rows"] if all(kept[name](row[place]) for place, name in _columns(table))]
    return {**table, "rows": rows, "kept": kept}


def _columns(table: Mapping[str, Any]) -> list[tuple[int, str]]:
    """Places and names of the columns that name destinations."""
    return [(place, each["name"]) for place, each in enumerate(table["columns"]) if each.get("about") == ABOUT]


def keeper(sees: Sees) -> Callable[[str | None], bool]:
    """Whether a cell names a destination that may be seen."""

    def is_kept(name: str | None) -> bool:
        try:
            return name is not None and sees(Destination.parse(name))
        except InvalidDestination:
            return False

    return is_kept
