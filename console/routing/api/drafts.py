"""Drafts of the routing: begun, changed, compared with what is in force, asked for, applied, dropped."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal

from django.conf import settings
from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query, Router, Schema, Status
from pydantic import Field

from brokerapp.errors import DefinitionRefused
from console.access import redaction
from console.access.permissions import pattern_filter, visible
from console.access.roles import Verb
from console.analyses.api import RunOut
from console.api.common.inputs import Count, RequestBody
from console.api.common.operations import operation
from console.api.common.paging import PageQuery, page_of
from console.audit import trail
from console.broker.gateway import gateway
from console.routing.api.definitions import DefinitionsDiffOut, diff_ids, read_definitions
from console.routing.definitions.changes import DefinitionChange, diff_definitions
from console.routing.definitions.visibility import restore_hidden, visible_changes, visible_definitions
from console.routing.definitions.xml_fragment import diff_files
from console.routing.drafts import draft_service
from console.routing.drafts.actions import STEPS, require_draft_permission
from console.routing.drafts.models import Draft
from console.routing.preview import draft_trials

router = Router(tags=["routing"])
#: Drafts that are looked through, the latest.
MAX_DRAFTS = 10_000


class DraftIn(RequestBody):
    """What a draft shall make of the routing."""

    name: str = Field(min_length=1, max_length=draft_service.MAX_NAME)
    definitions: dict[str, Any] = Field(description="All of them, as they were read and then changed")
    version: Count = Field(description="The version they were derived from")
    remark: str = ""


class WhatIfIn(RequestBody):
    """How much recorded traffic a draft is tried on."""

    window: str = draft_trials.DEFAULT_WINDOW


class RemarkOut(Schema):
    """What somebody said or did."""

    author: str
    time: datetime
    what: str
    text: str


class DraftOut(Schema):
    """A draft. `changes` are definitions `before` and `after`, null where there is none; those that one may know of."""

    id: int
    name: str
    author: str
    state: str
    changes: list[dict[str, Any]]
    base_version: int
    applied_version: int | None
    decided_by: str
    created: datetime
    changed: datetime

    @staticmethod
    def resolve_changes(draft: Draft, context: Any) -> list[dict[str, Any]]:
        """Without those that the asker may not know of."""
        return [
            each.to_json() for each in visible_changes(draft.read_changes(), pattern_filter(context["request"].user))
        ]


class DraftPage(Schema):
    """A page of drafts, the one that was changed last first."""

    items: list[DraftOut]
    total: int
    page: int
    pages: int


class DraftQuery(PageQuery):
    """Which ones; empty: all."""

    state: Literal["", "open", "asked", "applied", "dropped"] = ""


class DraftDiffOut(Schema):
    """How a draft stands to what is in force."""

    version: int = Field(description="In force")
    difference: DefinitionsDiffOut
    clashes: list[str] = Field(description="Ids of what somebody else changed as well")
    problem: str = Field(description="Why it cannot work")
    can_apply: bool
    lines: list[tuple[str, str]] = Field(description="Of the activemq.xml, with `+`, `-`, a blank, or `@` for a gap")


class DraftStepIn(RequestBody):
    """What goes with a step: a remark, a new name, or a definition and whose side of it shall stand."""

    text: str = ""
    name: str = ""
    id: str = ""
    keep: Literal["", "mine", "theirs"] = ""


@operation(router, "GET", "", Verb.SEE, response=DraftPage)
def list_drafts(request: HttpRequest, query: Annotated[DraftQuery, Query()]) -> Any:
    """List drafts of the routing."""
    sees, found = pattern_filter(request.user), Draft.objects.all()
    found = found.filter(state=query.state) if query.state else found
    return page_of([each for each in found[:MAX_DRAFTS] if draft_service.is_visible(each, sees)], query)


@operation(router, "POST", "", Verb.DRAFT, response={201: DraftOut})
def create_draft(request: HttpRequest, wanted: DraftIn) -> Any:
    """Begin a draft; nothing is in force yet."""
    changes = _read_changes(request, wanted)
    with trail.recording(request, "begin draft", wanted.name) as change:
        draft = draft_service.create_draft(
            request.user.get_username(), wanted.name, changes, wanted.version, wanted.remark
        )
        change.after = draft.changes
    return Status(201, draft)


@operation(router, "GET", "/{int:draft_id}", Verb.SEE, response=DraftOut)
def get_draft(request: HttpRequest, draft_id: int) -> Any:
    """One draft."""
    return _get_draft_or_404(request, draft_id)


@operation(router, "PUT", "/{int:draft_id}", Verb.DRAFT, response=DraftOut)
def change_draft(request: HttpRequest, draft_id: int, wanted: DraftIn) -> Any:
    """Give a draft other changes. What was asked for before has to be asked for again."""
    draft = _get_draft_or_404(request, draft_id)
    known_ones = visible_changes(draft.read_changes(), pattern_filter(request.user))
    others = [each for each in draft.read_changes() if each not in known_ones]  # stay as they are
    changes = [*others, *_read_changes(request, wanted)]
    with trail.recording(request, "change draft", draft.name, before=draft.changes) as change:
        draft_service.replace_changes(draft, request.user.get_username(), changes, "changed", wanted.remark)
        change.after = draft.changes
    return draft


@operation(router, "GET", "/{int:draft_id}/diff", Verb.SEE, response=DraftDiffOut)
def diff_draft(request: HttpRequest, draft_id: int) -> Any:
    """What a draft would change of what is in force, and what stands in its way."""
    sees = pattern_filter(request.user)
    found = draft_service.status_of(
        visible_changes(_get_draft_or_404(request, draft_id).read_changes(), sees), gateway().definitions()
    )
    before, after = visible_definitions(found.current, sees), visible_definitions(found.proposed, sees)
    lines = diff_files(before, after, settings.SLUICE.broker_name) if not found.problem else []
    return {
        "version": found.current.version,
        "difference": diff_ids(found.current, replace(found.proposed, version=found.current.version)),
        "clashes": [each.change.id for each in found.conflicts],
        "problem": redaction.redact_sentence(found.problem, visible(request.user)),
        "can_apply": found.can_apply, "lines": [(each.sign, each.text) for each in lines],
    }  # fmt: skip


@operation(router, "GET", "/{int:draft_id}/remarks", Verb.SEE, response=list[RemarkOut])
def list_remarks(request: HttpRequest, draft_id: int) -> Any:
    """What was said about a draft and done with it."""
    return _get_draft_or_404(request, draft_id).remarks.all()


@operation(router, "POST", "/{int:draft_id}/trials", Verb.ANALYSE, response={201: RunOut})
def start_trial(request: HttpRequest, draft_id: int, wanted: WhatIfIn) -> Any:
    """Try a draft on recorded traffic: a run of an analysis, whose result says what would have gone where."""
    draft = _get_draft_or_404(request, draft_id)
    with trail.recording(request, "try draft", draft.name) as change:
        run = draft_trials.start_draft_run(draft, wanted.window, request.user.get_username())
        change.after = {"run": str(run.id), "window": run.request["window"], "revision": draft.revision}
    return Status(201, run)


@operation(router, "POST", "/{int:draft_id}/{what}", Verb.DRAFT, response=DraftOut)
def step_draft(
    request: HttpRequest, draft_id: int,
    what: Literal["apply", "ask", "return", "drop", "remark", "rename", "leave-out", "resolve"], said: DraftStepIn,
) -> Any:  # fmt: skip
    """Apply a draft, ask for it, return, drop, rename it, remark on it, leave a change out, or resolve a clash."""
    draft = _get_draft_or_404(request, draft_id)
    STEPS[what](request, draft, said.model_dump())
    return draft


def _get_draft_or_404(request: HttpRequest, draft_id: int) -> Draft:
    draft = get_object_or_404(Draft, pk=draft_id)
    if not draft_service.is_visible(draft, pattern_filter(request.user)):
        raise Http404("There is no such draft.")
    return draft


def _read_changes(request: HttpRequest, wanted: DraftIn) -> list[DefinitionChange]:
    base = gateway().definitions(wanted.version)
    changes = diff_definitions(
        base, restore_hidden(read_definitions(wanted.definitions), base, pattern_filter(request.user))
    )
    if not changes:
        raise DefinitionRefused(f"these definitions are those of version {wanted.version}: the draft changes nothing")
    require_draft_permission(request, changes)
    return changes
