"""Filters that describe definitions, drafts and conditions in templates."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from django import template

from brokerapp.config import ImportOutcome
from console.routing.definitions.changes import ChangeConflict, id_of
from console.routing.definitions.definition_values import LABELS, label_of, title_of
from console.routing.drafts.models import Draft

register = template.Library()

for _filter in (id_of, label_of, title_of):
    register.filter(_filter.__name__, _filter)


@register.filter
def unlocalized(value: float) -> str:
    """Write a coordinate as SVG reads it: 12 or 12.5."""
    return f"{value:g}" if abs(value) < 1e5 else f"{value:.0f}"


@register.filter
def cap(value: int, most: int) -> int:
    """Return the number, limited to a maximum."""
    return min(value, most)


#: Values of a condition in SQL-92's three-valued logic, and the icons that show them.
_TRUTH = {True: "true", False: "false", None: "unknown"}
_TRUTH_ICONS = {True: "check", False: "close", None: "look"}
_CHANGE_BADGES = {"new": "good", "removed": "look"}
_OUTCOME_BADGES = {ImportOutcome.TAKEN: "good", ImportOutcome.UNKNOWN: "look", ImportOutcome.ADAPTED: "accent"}
_DRAFT_BADGES = {Draft.State.ASKED: "look", Draft.State.APPLIED: "good", Draft.State.OPEN: "accent"}
_DRAFT_STATES = {Draft.State.OPEN: "Open", Draft.State.ASKED: "Awaiting approval", Draft.State.DROPPED: "Discarded"}
#: What the activity of a draft says for the actions that its remarks store.
_REMARK_ACTIONS = {
    "said": "commented",
    "began": "created the draft",
    "changed": "changed",
    "asked for approval": "requested approval",
    "returned it": "requested changes",
    "dropped it": "discarded the draft",
    "renamed it": "renamed the draft",
    "left out": "removed from the draft",
    "kept the draft's side of": "kept the draft version of",
    "took what is in force of": "kept the active version of",
    "applied it": "applied the draft",
}


def _look_up(table: Mapping[Any, str], default: str | None, value: Any) -> str:
    return table.get(value, value if default is None else default)


#: Filters that look a value up in a table, with the default for others.
for _name, _table, _default in (
    ("truth", _TRUTH, ""),
    ("truth_icon", _TRUTH_ICONS, ""),
    ("change_badge", _CHANGE_BADGES, "accent"),
    ("outcome_badge", _OUTCOME_BADGES, ""),
    ("draft_badge", _DRAFT_BADGES, ""),
    ("remark_action", _REMARK_ACTIONS, None),
    ("kind_label", LABELS, ""),
):
    register.filter(_name, partial(_look_up, _table, _default))


@register.filter
def draft_status(draft: Draft) -> str:
    """Describe the state of a draft: `Awaiting approval`, `Applied as version 7`."""
    if draft.state == Draft.State.APPLIED:
        return f"Applied as version {draft.applied_version}"
    return _DRAFT_STATES[Draft.State(draft.state)]


@register.filter
def conflict_title(conflict: ChangeConflict) -> str:
    """Describe in a heading how another user's change conflicts with a draft."""
    if conflict.is_name_taken:
        return f"Name conflict: another user defined {title_of(conflict.theirs)}"
    if conflict.theirs is None:
        return f"Conflict: another user deleted {title_of(conflict.change.before)}"
    return f"Conflict: another user changed {title_of(conflict.theirs)}"
