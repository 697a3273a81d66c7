"""Import an ActiveMQ XML file as a draft, after a report on it; export the definitions as one."""

from __future__ import annotations

from collections import Counter

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from brokerapp.config import ImportOutcome, export_xml, import_definitions
from brokerapp.errors import BrokerError, ConfigurationRefused, SelectorSyntaxError
from brokerapp.model.definitions import Definitions, RedeliverySettings
from console.access import redaction
from console.access.permissions import Permission, pattern_filter, permission_required, visible
from console.audit import trail
from console.broker.gateway import gateway
from console.routing.definitions.changes import (
    REDELIVERY_SETTINGS_ID,
    Definition,
    DefinitionChange,
    collect_definitions,
    definitions_by_id,
    diff_definitions,
)
from console.routing.definitions.definition_values import change_rows
from console.routing.definitions.publishing import require_draft_permission
from console.routing.definitions.visibility import restore_hidden, visible_definitions
from console.routing.drafts import draft_service

#: Maximum characters of a file.
MAX_FILE = 1_000_000
#: Whether the file's definitions are merged with the existing ones or replace them.
MODES = ("merge", "replace")
_NO_DEFINITIONS = Definitions(virtual_destinations=())


@require_http_methods(["GET", "POST"])
@permission_required(Permission.DRAFT)
def import_file(request: HttpRequest) -> HttpResponse:
    """Show the report on a file and its changes; save them as a draft if requested."""
    context = {"text": "", "mode": "merge", "error": ""}
    if request.method == "GET":
        return render(request, "routing/editor/xml_import.html", context)
    mode = request.POST.get("mode")
    context |= {"text": _text_of(request), "mode": mode if mode in MODES else "merge"}
    try:
        if len(context["text"]) > MAX_FILE:
            raise ConfigurationRefused(f"the file has more than {MAX_FILE:,} characters")
        adds = context["mode"] == "merge"
        found, report = import_definitions(context["text"], adds=adds)
        current = gateway().definitions()
        sees = pattern_filter(request.user)
        proposed = merge_definitions(current, found) if adds else restore_hidden(found, current, sees)
        changes = diff_definitions(current, proposed)
        require_draft_permission(request, changes)
        if "draft" in request.POST and changes:
            return _save_as_draft(request, current, changes)
        outcomes = Counter(each.what for each in report)
        context |= {
            "report": report, "outcomes": [(what, outcomes[what]) for what in ImportOutcome if outcomes[what]],
            "read": True, "defines_routing": _defines_routing(context["text"]),
            "changes": [(each, change_rows(each)) for each in changes],
            "unchanged": _unchanged_definitions(visible_definitions(current, sees), proposed),
        }  # fmt: skip
    except BrokerError as error:
        context |= {
            "error": redaction.redact_sentence(str(error), visible(request.user)),
            "wrong": _wrong_selector(error),
        }
    return render(request, "routing/editor/xml_import.html", context, status=400 if context["error"] else 200)


def _wrong_selector(error: BrokerError) -> SelectorSyntaxError | None:
    """Return the selector error for which a file is refused, if it is one."""
    return error.__cause__ if isinstance(error.__cause__, SelectorSyntaxError) else None


def _text_of(request: HttpRequest) -> str:
    upload = request.FILES.get("file")
    if upload is None:
        return request.POST.get("text", "").strip()
    return upload.read(4 * MAX_FILE).decode("utf-8", errors="replace")


def merge_definitions(current: Definitions, found: Definitions) -> Definitions:
    """Add the definitions of the file to the active ones, or replace those with the same id."""
    added = definitions_by_id(found)
    if found.redelivery == RedeliverySettings():  # the file does not mention it
        del added[REDELIVERY_SETTINGS_ID]
    return collect_definitions({**definitions_by_id(current), **added}.values(), current.version)


def _defines_routing(text: str) -> bool:
    """Return whether the file itself defines anything; what ActiveMQ has built in is not in the file."""
    found, _ = import_definitions(text, adds=True)
    return bool(diff_definitions(_NO_DEFINITIONS, found))


def _unchanged_definitions(current: Definitions, proposed: Definitions) -> list[Definition]:
    """Return the active definitions that stay unchanged."""
    before = definitions_by_id(current)
    return [
        each
        for id, each in definitions_by_id(proposed).items()
        if id != REDELIVERY_SETTINGS_ID and before.get(id) == each
    ]


def _save_as_draft(request: HttpRequest, current: Definitions, changes: list[DefinitionChange]) -> HttpResponse:
    author, name = request.user.get_username(), "Import of an ActiveMQ configuration"
    with trail.recording(request, "import", name) as record:
        draft = draft_service.create_draft(author, name, changes, current.version)
        record.after = draft.changes
    messages.success(request, "Draft saved. Not applied yet.")
    return redirect("draft", draft_id=draft.pk)


@require_GET
@permission_required(Permission.SEE)
def export_file(request: HttpRequest) -> HttpResponse:
    """Export the active definitions as an activemq.xml."""
    text = export_xml(
        visible_definitions(gateway().definitions(), pattern_filter(request.user)), settings.SLUICE.broker_name
    )
    headers = {"Content-Disposition": 'attachment; filename="activemq.xml"'}
    return HttpResponse(text, content_type="application/xml; charset=utf-8", headers=headers)
