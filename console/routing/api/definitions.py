"""Definitions: virtual topics, composites, mirrored queues and policies, in versions."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any, Literal

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema
from pydantic import Field

from brokerapp.config import export_xml, import_definitions
from brokerapp.errors import BrokerError, ConfigurationRefused, DefinitionConflict
from brokerapp.model.definition_codec import from_json, to_json
from brokerapp.model.definitions import Definitions
from console.access.permissions import pattern_filter
from console.access.roles import Verb
from console.api.common.inputs import Count, RequestBody
from console.api.common.operations import operation
from console.audit import trail
from console.broker.gateway import gateway
from console.routing.definitions.changes import diff_definitions
from console.routing.definitions.versions import DefinitionVersion, redact_comments
from console.routing.definitions.visibility import restore_hidden, visible_definitions
from console.routing.drafts.actions import require_apply_permission
from console.routing.views.xml_files import MAX_FILE, merge_definitions

router = Router(tags=["routing"])


class DefinitionsOut(Schema):
    """Definitions at a version, each as the broker keeps it."""

    version: int
    definitions: dict[str, Any]
    nodes: dict[str, int | None] = Field(description="Version that each node applies; null: not reported")


class DefinitionsIn(RequestBody):
    """Definitions to put in force."""

    definitions: dict[str, Any] = Field(description="All of them, as they were read and then changed")
    version: Count = Field(description="The version they were derived from: another one by now is a conflict")
    comment: str = ""


class DefinitionsDiffOut(Schema):
    """What would change."""

    added: list[str]
    changed: list[str]
    removed: list[str]


class VersionOut(Schema):
    """One version."""

    version: int
    author: str
    comment: str
    time_ms: int


class XmlImportIn(RequestBody):
    """An activemq.xml, or a fragment of one."""

    xml: str = Field(max_length=MAX_FILE)
    mode: Literal["merge", "replace"] = "merge"
    apply: bool = Field(False, description="Else only the report, and what would change")


class XmlImportOut(Schema):
    """What was taken and what was not, line by line; the version when it was applied."""

    report: list[dict[str, Any]]
    difference: DefinitionsDiffOut
    version: int | None


@operation(router, "GET", "", Verb.SEE, response=DefinitionsOut)
def get_definitions(request: HttpRequest, version: Count | None = None) -> Any:
    """The definitions in force, or as they stood at a version."""
    return _definitions_out(request, gateway().definitions(version))


@operation(router, "PUT", "", Verb.ROUTE, response=DefinitionsOut)
def apply_definitions(request: HttpRequest, wanted: DefinitionsIn) -> Any:
    """Put definitions in force on all nodes, if the version they were derived from still is."""
    proposed = restore_hidden(
        read_definitions(wanted.definitions), gateway().definitions(), pattern_filter(request.user)
    )
    return _apply(request, "apply", proposed, wanted.version, wanted.comment)


@operation(router, "POST", "/check", Verb.DRAFT, response=DefinitionsDiffOut)
def check_definitions(request: HttpRequest, wanted: DefinitionsIn) -> Any:
    """Whether definitions can work, and what they would change; nothing is changed."""
    current = gateway().definitions()
    proposed = restore_hidden(read_definitions(wanted.definitions), current, pattern_filter(request.user))
    gateway().check(proposed)
    return diff_ids(current, proposed)


@operation(router, "GET", "/history", Verb.SEE, response=list[VersionOut])
def list_versions(request: HttpRequest, limit: Count = 50) -> Any:
    """Versions of the definitions, newest first."""
    found = [DefinitionVersion.of(each) for each in gateway().history(limit=max(1, min(limit, 500)))]
    return [_version_out(each) for each in redact_comments(found, pattern_filter(request.user))]


@operation(router, "POST", "/revert/{int:version}", Verb.ROUTE, response=DefinitionsOut)
def revert_definitions(request: HttpRequest, version: Count) -> Any:
    """Put the definitions of a former version in force again, as a new version."""
    former, current = gateway().definitions(version), gateway().definitions()
    return _apply(request, "revert", former, current.version, f"Back to version {version}")


@operation(router, "GET", "/export", Verb.SEE)
def export_definitions(request: HttpRequest) -> Any:
    """The definitions in force as an activemq.xml."""
    text = export_xml(
        visible_definitions(gateway().definitions(), pattern_filter(request.user)), settings.SLUICE.broker_name
    )
    return HttpResponse(text, content_type="application/xml; charset=utf-8", headers={"Cache-Control": "no-store"})


@operation(router, "POST", "/import", Verb.ROUTE, response=XmlImportOut)
def import_definitions_file(request: HttpRequest, wanted: XmlImportIn) -> Any:
    """Read an activemq.xml: report what is taken, and apply it where that is wanted."""
    adds = wanted.mode == "merge"
    found, report = import_definitions(wanted.xml, adds=adds)
    current = gateway().definitions()
    proposed = (
        merge_definitions(current, found) if adds else restore_hidden(found, current, pattern_filter(request.user))
    )
    proposed = replace(proposed, version=current.version)
    gateway().check(proposed)
    version = None
    if wanted.apply:
        version = _apply(request, "import", proposed, current.version, "Import of an ActiveMQ configuration")["version"]
    return {
        "report": [asdict(each) for each in report],
        "difference": diff_ids(current, proposed),
        "version": version,
    }


def _apply(request: HttpRequest, action: str, proposed: Definitions, derived_from: int, comment: str) -> dict[str, Any]:
    current = gateway().definitions()
    require_apply_permission(request, diff_definitions(current, proposed))
    with trail.recording(request, action, "definitions", before=to_json(current)) as change:
        if current.version != derived_from:
            raise DefinitionConflict(derived_from, current.version)
        saved = gateway().define(replace(proposed, version=derived_from), request.user.get_username(), comment[:200])
        change.after = to_json(saved)
    return _definitions_out(request, saved)


def diff_ids(current: Definitions, proposed: Definitions) -> dict[str, list[str]]:
    """Ids of what would change, by how: as Checked has them."""
    found: dict[str, list[str]] = {"added": [], "changed": [], "removed": []}
    for each in diff_definitions(current, proposed):
        found["added" if each.what == "new" else each.what].append(each.id)
    return found


def read_definitions(data: dict[str, Any]) -> Definitions:
    """Definitions that somebody sent. Raises DefinitionRefused, ConfigurationRefused."""
    try:
        return from_json(data)
    except BrokerError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigurationRefused(f"definitions: not as GET answers them: {error!r}") from error


def _version_out(version: DefinitionVersion) -> dict[str, Any]:
    time_ms = round(version.time.timestamp() * 1000) if version.time else 0
    return {"version": version.number, "author": version.author, "comment": version.comment, "time_ms": time_ms}


def _definitions_out(request: HttpRequest, definitions: Definitions) -> dict[str, Any]:
    definitions = visible_definitions(definitions, pattern_filter(request.user))
    nodes = {each.name: each.definitions for each in gateway().nodes()}
    return {"version": definitions.version, "definitions": to_json(definitions), "nodes": nodes}
