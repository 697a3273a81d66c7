"""Routing as files: import of an ActiveMQ XML with a report and a preview, export of the same."""

from __future__ import annotations

from dataclasses import replace

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from brokerapp.config import export_xml, import_definitions
from brokerapp.definitions import Definitions, to_json
from brokerapp.errors import BrokerError, ConfigurationRefused
from console import audit
from console.access import Verb, needs
from console.gateway import gateway
from console.routing_xml import difference

#: Characters of a file that is read.
MAX_FILE = 1_000_000
#: What to do with the definitions that stand: put the file's in their place, or add the file's to them.
MODES = ("merge", "replace")


@require_http_methods(["GET", "POST"])
@needs(Verb.ROUTE)
def import_file(request: HttpRequest) -> HttpResponse:
    """First a preview: the report on the file and what would change; then, confirmed, the change."""
    context = {"text": "", "mode": "merge", "error": ""}
    if request.method == "GET":
        return render(request, "console/routing_import.html", context)
    mode = request.POST.get("mode")
    context |= {"text": _text_of(request), "mode": mode if mode in MODES else "merge"}
    try:
        if len(context["text"]) > MAX_FILE:
            raise ConfigurationRefused(f"the file has more than {MAX_FILE:,} characters")
        found, report = import_definitions(context["text"])
        current = gateway().definitions()
        proposed = found if context["mode"] == "replace" else merged(current, found)
        proposed = replace(proposed, version=current.version)
        if "apply" in request.POST:
            return _apply(request, current, proposed)
        context |= {"report": report, "difference": difference(current, proposed)}
    except BrokerError as error:
        context["error"] = str(error)
    return render(request, "console/routing_import.html", context, status=400 if context["error"] else 200)


def _text_of(request: HttpRequest) -> str:
    upload = request.FILES.get("file")
    if upload is None:
        return request.POST.get("text", "").strip()
    return upload.read(4 * MAX_FILE).decode("utf-8", errors="replace")


def merged(current: Definitions, found: Definitions) -> Definitions:
    """The definitions in force with those of the file added, or put in the place of the ones they have the id of."""
    result, standing = current, {each.id for each in current.virtual_destinations}
    for each in found.virtual_destinations:
        result = result.with_virtual_destination(each, replacing=each.id if each.id in standing else None)
    policies = {each.id: each for each in (*current.policies, *found.policies)}
    return replace(result, policies=tuple(policies.values()))


def _apply(request: HttpRequest, current: Definitions, proposed: Definitions) -> HttpResponse:
    with audit.recording(request, "import", "definitions", before=to_json(current)) as change:
        saved = gateway().define(proposed, request.user.get_username(), "Import of an ActiveMQ configuration")
        change.after = to_json(saved)
    messages.success(request, f"Imported as version {saved.version}. It works on all nodes now.")
    return redirect("routing")


@require_GET
@needs(Verb.SEE)
def export_file(request: HttpRequest) -> HttpResponse:
    """The definitions in force as an activemq.xml."""
    text = export_xml(gateway().definitions(), settings.SLUICE.broker_name)
    headers = {"Content-Disposition": 'attachment; filename="activemq.xml"'}
    return HttpResponse(text, content_type="application/xml; charset=utf-8", headers=headers)
