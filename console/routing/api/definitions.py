"""REST operations on definitions: virtual topics, composites, mirrored queues and policies, in versions."""

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
from console.access.roles import Permission
from console.api.common.inputs import Count, RequestBody
from console.api.common.operations import operation
from console.broker.gateway import gateway
from console.routing.definitions.changes import diff_definitions
from console.routing.definitions.publishing import apply
from console.routing.definitions.versions import DefinitionVersion, redact_comments
from console.routing.definitions.visibility import restore_hidden, visible_definitions
from console.routing.views.xml_files import MAX_FILE, merge_definitions

router = Router(tags=["routing"])


class DefinitionsOut(Schema):
    """All definitions at a version, in the broker's format."""

    version: int
    definitions: dict[str, Any]
    nodes: dict[str, int | None] = Field(description="Version that each node applies; null: not reported")


class DefinitionsIn(RequestBody):
    """Definitions to apply."""

    definitions: dict[str, Any] = Field(description="All definitions: as read, with the changes")
    version: Count = Field(description="Version that they were derived from; a conflict if another one is active")
    comment: str = ""


class DefinitionsDiffOut(Schema):
    """Ids of the definitions that would change."""

    added: list[str]
    changed: list[str]
    removed: list[str]


class VersionOut(Schema):
    """A version in the history of definitions."""

    version: int
    author: str
    comment: str
    time_ms: int


class XmlImportIn(RequestBody):
    """An activemq.xml, or a fragment of one."""

    xml: str = Field(max_length=MAX_FILE)
    mode: Literal["merge", "replace"] = "merge"
    apply: bool = Field(False, description="Apply the definitions; otherwise only report")


class XmlImportOut(Schema):
    """The outcome of each element, the changes, and the version if they were applied."""

    report: list[dict[str, Any]]
    difference: DefinitionsDiffOut
    version: int | None


@operation(router, "GET", "", Permission.SEE, response=DefinitionsOut)
def get_definitions(request: HttpRequest, version: Count | None = None) -> Any:
    """Get the active definitions, or those of a version."""
    return _definitions_out(request, gateway().definitions(version))


@operation(router, "PUT", "", Permission.ROUTE, response=DefinitionsOut)
def apply_definitions(request: HttpRequest, wanted: DefinitionsIn) -> Any:
    """Apply definitions on all nodes, if the version that they were derived from is still active."""
    current = gateway().definitions()
    proposed = restore_hidden(read_definitions(wanted.definitions), current, pattern_filter(request.user))
    return _apply(request, "apply", current, proposed, wanted.version, wanted.comment)


@operation(router, "POST", "/check", Permission.DRAFT, response=DefinitionsDiffOut)
def check_definitions(request: HttpRequest, wanted: DefinitionsIn) -> Any:
    """Validate definitions and list their changes. Nothing is applied."""
    current = gateway().definitions()
    proposed = restore_hidden(read_definitions(wanted.definitions), current, pattern_filter(request.user))
    gateway().check(proposed)
    return diff_ids(current, proposed)


@operation(router, "GET", "/history", Permission.SEE, response=list[VersionOut])
def list_versions(request: HttpRequest, limit: Count = 50) -> Any:
    """List versions of the definitions, newest first."""
    found = [DefinitionVersion.of(each) for each in gateway().history(limit=max(1, min(limit, 500)))]
    return [_version_out(each) for each in redact_comments(found, pattern_filter(request.user))]


@operation(router, "POST", "/revert/{int:version}", Permission.ROUTE, response=DefinitionsOut)
def revert_definitions(request: HttpRequest, version: Count) -> Any:
    """Apply the definitions of an earlier version again, as a new version."""
    former, current = gateway().definitions(version), gateway().definitions()
    return _apply(request, "revert", current, former, current.version, f"Revert to version {version}")


@operation(router, "GET", "/export", Permission.SEE)
def export_definitions(request: HttpRequest) -> Any:
    """Export the active definitions as an activemq.xml."""
    text = export_xml(
        visible_definitions(gateway().definitions(), pattern_filter(request.user)), settings.SLUICE.broker_name
    )
    return HttpResponse(text, content_type="application/xml; charset=utf-8", headers={"Cache-Control": "no-store"})


@operation(router, "POST", "/import", Permission.ROUTE, response=XmlImportOut)
def import_definitions_file(request: HttpRequest, wanted: XmlImportIn) -> Any:
    """Import an activemq.xml: report the outcome of each element, and apply it if requested."""
    adds = wanted.mode == "merge"
    found, report = import_definitions(wanted.xml, adds=adds)
    current = gateway().definitions()
    proposed = (
        merge_definitions(current, found) if adds else restore_hidden(found, current, pattern_filter(request.user))
    )
    proposed = replace(proposed, version=current.version)
    version = None
    if wanted.apply:
        comment = "Import of an ActiveMQ configuration"
        version = _apply(request, "import", current, proposed, current.version, comment)["version"]
    else:
        gateway().check(proposed)
    return {
        "report": [asdict(each) for each in report],
        "difference": diff_ids(current, proposed),
        "version": version,
    }


def _apply(
    request: HttpRequest, action: str, current: Definitions, proposed: Definitions, derived_from: int, comment: str
) -> dict[str, Any]:
    author = request.user.get_username()

    def store() -> Definitions:
        if current.version != derived_from:
            raise DefinitionConflict(derived_from, current.version)
        return gateway().define(replace(proposed, version=derived_from), author, comment[:200])

    saved = apply(
        request, diff_definitions(current, proposed), store, action=action, object="definitions",
        describe=lambda saved: to_json(saved or current),
    )  # fmt: skip
    return _definitions_out(request, saved)


def diff_ids(current: Definitions, proposed: Definitions) -> dict[str, list[str]]:
    """Return the ids of definitions that would be added, changed and removed."""
    found: dict[str, list[str]] = {"added": [], "changed": [], "removed": []}
    for each in diff_definitions(current, proposed):
        found["added" if each.what == "new" else each.what].append(each.id)
    return found


def read_definitions(data: dict[str, Any]) -> Definitions:
    """Read submitted definitions. Raises DefinitionRefused, ConfigurationRefused."""
    try:
        return from_json(data)
    except BrokerError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigurationRefused(f"definitions: unknown format, use that of GET: {error!r}") from error


def _version_out(version: DefinitionVersion) -> dict[str, Any]:
    time_ms = round(version.time.timestamp() * 1000) if version.time else 0
    return {"version": version.number, "author": version.author, "comment": version.comment, "time_ms": time_ms}


def _definitions_out(request: HttpRequest, definitions: Definitions) -> dict[str, Any]:
    definitions = visible_definitions(definitions, pattern_filter(request.user))
    nodes = {each.name: each.definitions for each in gateway().nodes()}
    return {"version": definitions.version, "definitions": to_json(definitions), "nodes": nodes}
