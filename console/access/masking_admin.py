"""Create, change, order and delete masking rules for pages and the API, with audit entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest

from console.access.masking_rules import MaskRule
from console.access.models import MaskingRule
from console.audit import trail

#: What somebody says of a rule, and characters of the last two.
FIELDS = ("role", "scope", "place", "pattern", "action", "replacement", "comment")
MAX_TEXT = 200


def rule_fields(rule: MaskingRule) -> dict[str, str]:
    """Return the fields of a rule as the form has them."""
    return {name: getattr(rule, name) for name in FIELDS}


def save_rule(request: HttpRequest, existing: MaskingRule | None, said: Mapping[str, str]) -> MaskingRule:
    """Create a rule, or change one. Raises RequestRefused, InvalidDestination."""
    MaskRule.parse(*(said[name] for name in FIELDS[:-1]))
    values = {**said, "scope": said["scope"] or ">"}
    values |= {name: said[name][:MAX_TEXT] for name in ("comment", "replacement")}
    about = f"masking rule {existing.pk}" if existing else "masking rule"
    before = rule_fields(existing) if existing else None
    with trail.recording(request, "change masking" if existing else "add masking", about, before=before) as change:
        rule = existing or MaskingRule(order=MaskingRule.objects.count())
        for name in FIELDS:
            setattr(rule, name, values[name])
        rule.save()
        change.after = rule_fields(rule)
    return rule


def change_rule(request: HttpRequest, rule: MaskingRule, action: str) -> None:
    """Enable or disable a rule, move it to the top, or delete it; `action` is one of CHANGES."""
    before = rule_fields(rule) | {"active": rule.active, "order": rule.order}
    with trail.recording(request, f"{action} masking", f"masking rule {rule.pk}", before=before) as done:
        CHANGES[action](rule)
        done.after = None if action == "delete" else before | {"active": rule.active, "order": rule.order}


def _toggle(rule: MaskingRule) -> None:
    rule.active = not rule.active
    rule.save()


def _move_first(rule: MaskingRule) -> None:
    """Move a rule before all others: for each value the first matching rule applies."""
    top = MaskingRule.objects.first()
    rule.order = (top.order if top else 0) - 1
    rule.save()


CHANGES: dict[str, Any] = {"switch": _toggle, "first": _move_first, "delete": MaskingRule.delete}
