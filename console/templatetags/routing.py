"""Filters that describe definitions, drafts and conditions in templates."""

from __future__ import annotations

from django import template

from brokerapp.config import ImportOutcome
from console.routing.definitions.changes import ChangeConflict, id_of
from console.routing.definitions.definition_values import label_of, title_of
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


@register.filter
def truth(value: bool | None) -> str:
    """Name the value of a condition: `true`, `false` or `unknown`."""
    return _TRUTH[value]


@register.filter
def truth_icon(value: bool | None) -> str:
    """Name the icon for the value of a condition."""
    return _TRUTH_ICONS[value]


@register.filter
def change_badge(what: str) -> str:
    """Name the badge color for a kind of change: new, changed or removed."""
    return _CHANGE_BADGES.get(what, "accent")


@register.filter
def outcome_badge(outcome: ImportOutcome) -> str:
    """Name the badge color for the outcome of an imported element."""
    return _OUTCOME_BADGES.get(outcome, "")


@register.filter
def draft_badge(state: str) -> str:
    """Name the badge color for the state of a draft."""
    return _DRAFT_BADGES.get(Draft.State(state), "")


@register.filter
def draft_status(draft: Draft) -> str:
    """Describe the state of a draft: `Awaiting approval`, `Applied as version 7`."""
    if draft.state == Draft.State.APPLIED:
        return f"Applied as version {draft.applied_version}"
    return _DRAFT_STATES[Draft.State(draft.state)]


@register.filter
def remark_action(what: str) -> str:
    """Describe the action that a remark on a draft stores."""
    return _REMARK_ACTIONS.get(what, what)


@register.filter
def conflict_title(conflict: ChangeConflict) -> str:
    """Describe in a heading how another user's change conflicts with a draft."""
    if conflict.is_name_taken:
        return f"Name conflict: another user defined {title_of(conflict.theirs)}"
    if conflict.theirs is None:
        return f"Conflict: another user deleted {title_of(conflict.change.before)}"
    return f"Conflict: another user changed {title_of(conflict.theirs)}"
