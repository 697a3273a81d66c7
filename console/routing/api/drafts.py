"""REST operations on drafts: create, change, compare with the active version, request approval, apply, discard."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal

from django.conf import settings
from django.http import HttpRequest
from ninja import Query, Router, Schema, Status
from pydantic import Field

from brokerapp.errors import DefinitionRefused
from console.access import redaction
from console.access.permissions import pattern_filter, visible
from console.access.roles import Permission
from console.analyses.api import SINCE_HELP, UNTIL_HELP, RunOut
from console.analyses.time_range_form import requested_window
from console.api.common.inputs import Count, RequestBody
from console.api.common.operations import operation
from console.api.common.paging import Page, PageQuery, page_of
from console.audit import trail
from console.broker.gateway import gateway
from console.routing.api.definitions import DefinitionsDiffOut, diff_ids, read_definitions
from console.routing.definitions.changes import DefinitionChange, diff_definitions
from console.routing.definitions.publishing import propose, require_draft_permission
from console.routing.definitions.visibility import restore_hidden, visible_changes, visible_definitions
from console.routing.definitions.xml_fragment import diff_files
from console.routing.drafts import draft_service
from console.routing.drafts.actions import STEPS, get_draft_or_404
from console.routing.drafts.models import Draft
from console.routing.preview import what_if

router = Router(tags=["routing"])
#: Latest drafts that are searched.
MAX_DRAFTS = 10_000


class DraftIn(RequestBody):
    """A draft with the definitions that it proposes."""

    name: str = Field(min_length=1, max_length=draft_service.MAX_NAME)
    definitions: dict[str, Any] = Field(description="All definitions: as read, with the changes")
    version: Count = Field(description="Version that they were derived from")
    remark: str = ""


class WhatIfIn(RequestBody):
    """The time range of recorded traffic for a what-if run."""

    window: str = Field("", description=f"Length of a range that ends now; {what_if.DEFAULT_WINDOW} by default")
    since: str = Field("", description=SINCE_HELP)
    until: str = Field("", description=UNTIL_HELP)


class RemarkOut(Schema):
    """A comment on a draft, or a step of it."""

    author: str
    time: datetime
    what: str
    text: str


class DraftOut(Schema):
    """A draft. `changes` hold a definition `before` and `after`, or null; without those that the user must not know."""

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
        """Return the changes that the user may see."""
        return [
            each.to_json() for each in visible_changes(draft.read_changes(), pattern_filter(context["request"].user))
        ]


class DraftQuery(PageQuery):
    """A filter of drafts by their state; empty: all."""

    state: Literal["", "open", "asked", "applied", "dropped"] = ""


class DraftDiffOut(Schema):
    """A draft compared with the active version."""

    version: int = Field(description="Active version")
    difference: DefinitionsDiffOut
    clashes: list[str] = Field(description="Ids of definitions that another user changed, too")
    problem: str = Field(description="Why it cannot be applied")
    can_apply: bool
    lines: list[tuple[str, str]] = Field(
        description="Diff of the activemq.xml, with `+`, `-`, a blank, or `@` for a gap"
    )


class DraftStepIn(RequestBody):
    """Input of a step: a comment, a new name, or a definition and the side of its conflict to keep."""

    text: str = ""
    name: str = ""
    id: str = ""
    keep: Literal["", "mine", "theirs"] = ""


@operation(router, "GET", "", Permission.SEE, response=Page[DraftOut])
def list_drafts(request: HttpRequest, query: Annotated[DraftQuery, Query()]) -> Any:
    """List drafts of the routing."""
    sees, found = pattern_filter(request.user), Draft.objects.all()
    found = found.filter(state=query.state) if query.state else found
    return page_of([each for each in found[:MAX_DRAFTS] if draft_service.is_visible(each, sees)], query)


@operation(router, "POST", "", Permission.DRAFT, response={201: DraftOut})
def create_draft(request: HttpRequest, wanted: DraftIn) -> Any:
    """Create a draft. It is not applied."""
    changes = _read_changes(request, wanted)
    with trail.recording(request, "begin draft", wanted.name) as change:
        draft = draft_service.create_draft(
            request.user.get_username(), wanted.name, changes, wanted.version, wanted.remark
        )
        change.after = draft.changes
    return Status(201, draft)


@operation(router, "GET", "/{int:draft_id}", Permission.SEE, response=DraftOut)
def get_draft(request: HttpRequest, draft_id: int) -> Any:
    """Get a draft."""
    return get_draft_or_404(request, draft_id)


@operation(router, "PUT", "/{int:draft_id}", Permission.DRAFT, response=DraftOut)
def change_draft(request: HttpRequest, draft_id: int, wanted: DraftIn) -> Any:
    """Replace the changes of a draft. A requested approval has to be requested again."""
    draft = get_draft_or_404(request, draft_id)
    known_ones = visible_changes(draft.read_changes(), pattern_filter(request.user))
    others = [each for each in draft.read_changes() if each not in known_ones]  # stay unchanged
    changes = [*others, *_read_changes(request, wanted)]
    with trail.recording(request, "change draft", draft.name, before=draft.changes) as change:
        draft_service.replace_changes(draft, request.user.get_username(), changes, "changed", wanted.remark)
        change.after = draft.changes
    return draft


@operation(router, "GET", "/{int:draft_id}/diff", Permission.SEE, response=DraftDiffOut)
def diff_draft(request: HttpRequest, draft_id: int) -> Any:
    """Compare a draft with the active version, with its conflicts."""
    sees = pattern_filter(request.user)
    found = propose(visible_changes(get_draft_or_404(request, draft_id).read_changes(), sees), gateway().definitions())
    before, after = visible_definitions(found.current, sees), visible_definitions(found.proposed, sees)
    lines = diff_files(before, after, settings.SLUICE.broker_name) if not found.problem else []
    return {
        "version": found.current.version,
        "difference": diff_ids(found.current, replace(found.proposed, version=found.current.version)),
        "clashes": [each.change.id for each in found.conflicts],
        "problem": redaction.redact_sentence(found.problem, visible(request.user)),
        "can_apply": found.can_apply, "lines": [(each.sign, each.text) for each in lines],
    }  # fmt: skip


@operation(router, "GET", "/{int:draft_id}/remarks", Permission.SEE, response=list[RemarkOut])
def list_remarks(request: HttpRequest, draft_id: int) -> Any:
    """List the activity of a draft: comments and steps."""
    return get_draft_or_404(request, draft_id).remarks.all()


@operation(router, "POST", "/{int:draft_id}/trials", Permission.ANALYSE, response={201: RunOut})
def start_trial(request: HttpRequest, draft_id: int, wanted: WhatIfIn) -> Any:
    """Start a what-if analysis: replay recorded traffic against a draft."""
    draft = get_draft_or_404(request, draft_id)
    with trail.recording(request, "try draft", draft.name) as change:
        explicit = requested_window(wanted.window, wanted.since, wanted.until)
        run = what_if.start_draft_run(draft, wanted.window, request.user.get_username(), explicit)
        change.after = {"run": str(run.id), **what_if.window_of(run), "revision": draft.revision}
    return Status(201, run)


@operation(router, "POST", "/{int:draft_id}/{what}", Permission.DRAFT, response=DraftOut)
def step_draft(
    request: HttpRequest, draft_id: int,
    what: Literal["apply", "ask", "return", "drop", "remark", "rename", "leave-out", "resolve"], said: DraftStepIn,
) -> Any:  # fmt: skip
    """Apply, discard or rename a draft, request approval or changes, comment, remove a change, resolve a conflict."""
    draft = get_draft_or_404(request, draft_id)
    STEPS[what](request, draft, said.model_dump())
    return draft


def _read_changes(request: HttpRequest, wanted: DraftIn) -> list[DefinitionChange]:
    base = gateway().definitions(wanted.version)
    changes = diff_definitions(
        base, restore_hidden(read_definitions(wanted.definitions), base, pattern_filter(request.user))
    )
    if not changes:
        raise DefinitionRefused(f"the draft contains no changes from version {wanted.version}")
    require_draft_permission(request, changes)
    return changes
