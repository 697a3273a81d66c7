"""Serve masking rules in the API, in their order: the first rule that covers a destination applies."""

from __future__ import annotations

from typing import Any, Literal

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Router, Schema, Status
from pydantic import BaseModel, Field

from console.access import masking_admin
from console.access.models import MaskingRule
from console.access.roles import Permission
from console.api.common.inputs import RequestBody
from console.api.common.operations import operation

router = Router(tags=["people"])


class MaskingRuleFields(BaseModel):
    """Define the fields of a masking rule: target, action, role and scope."""

    role: str = Field("", description="Empty for all roles")
    scope: str = Field(">", max_length=500)
    place: str = Field(description="`json`, `header` or `body`")
    pattern: str = Field("", max_length=500)
    action: str = Field(description="`remove`, `replace`, `last4` or `show`")
    replacement: str = ""
    comment: str = ""


class MaskingRuleIn(RequestBody, MaskingRuleFields):
    """Describe a masking rule to create or to change."""


class MaskingRuleOut(Schema, MaskingRuleFields):
    """Describe a masking rule with its position."""

    id: int
    order: int
    active: bool


class MaskingRuleStepIn(RequestBody):
    """Describe a step on a masking rule: enable or disable it, or move it to the top."""

    action: Literal["switch", "first"]


@operation(router, "GET", "", Permission.USERS, response=list[MaskingRuleOut])
def list_masking_rules(request: HttpRequest) -> Any:
    """List masking rules in the order in which they apply."""
    return MaskingRule.objects.all()


@operation(router, "POST", "", Permission.USERS, response={201: MaskingRuleOut})
def create_masking_rule(request: HttpRequest, wanted: MaskingRuleIn) -> Any:
    """Create and enable a masking rule, after all others."""
    return Status(201, masking_admin.save_rule(request, None, wanted.model_dump()))


@operation(router, "PUT", "/{int:rule_id}", Permission.USERS, response=MaskingRuleOut)
def change_masking_rule(request: HttpRequest, rule_id: int, wanted: MaskingRuleIn) -> Any:
    """Change a masking rule."""
    return masking_admin.save_rule(request, get_object_or_404(MaskingRule, pk=rule_id), wanted.model_dump())


@operation(router, "POST", "/{int:rule_id}", Permission.USERS, response=MaskingRuleOut)
def step_masking_rule(request: HttpRequest, rule_id: int, wanted: MaskingRuleStepIn) -> Any:
    """Enable or disable a masking rule, or move it to the top."""
    rule = get_object_or_404(MaskingRule, pk=rule_id)
    masking_admin.change_rule(request, rule, wanted.action)
    return rule


@operation(router, "DELETE", "/{int:rule_id}", Permission.USERS, response={204: None})
def delete_masking_rule(request: HttpRequest, rule_id: int) -> Any:
    """Delete a masking rule."""
    masking_admin.change_rule(request, get_object_or_404(MaskingRule, pk=rule_id), "delete")
    return Status(204, None)
