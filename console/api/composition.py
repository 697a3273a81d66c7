"""Compose the API from the routers of all features, with its description."""

from __future__ import annotations

import re
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI

from brokerapp.version import VERSION
from console.access.api import masking
from console.accounts.api import effective_rights, groups, users
from console.alerts import api as alerts
from console.analyses import api as analyses
from console.analyses.exports import api as exports
from console.analyses.reports import api as reports
from console.analyses.sql import api as sql
from console.api import docs
from console.api.common import problems
from console.api.common.inputs import JsonParser
from console.audit.search import api as audit
from console.backups import api as backups
from console.checks import api as checks
from console.destinations import api as destinations
from console.destinations.clients import api as clients
from console.messages.api import dead_letters, jobs, messages, scheduled, searches, tracing
from console.metrics.api import metrics
from console.objectives import api as objectives
from console.routing.api import definitions, drafts, preview
from console.topology.api import networks, nodes, shards
from console.transactions import api as transactions

DESCRIPTION = """
REST API for all console operations. Create a token under **API tokens** and send it as
`Authorization: Bearer sluice_...`; a browser's session works too, with its CSRF token where something changes.

Errors are problem documents (`application/problem+json`): `status`, `detail`, and in `errors` each input with the rule
it breaks. Every change is recorded in the audit log.

A name in an address is one segment. Write `/` in it as `~1` (or `%2F`), `~` as `~0`, and, where the whole name is `.`
or `..`, each dot as `~2`; percent-encode the rest: `/api/v1/queues/in~1eu/messages` has those of the queue `in/eu`.
Destinations and subscriptions say their own address in `href`.
"""
#: The same where a name is asked for.
SEGMENT = "One path segment. Write `/` as `~1` (or `%2F`), `~` as `~0`, and the dots of `.` and `..` as `~2`."
_NAME = re.compile(r"\{name:(\w+)\}")


class SluiceApi(NinjaAPI):
    """Disable caching of responses, and add names and errors to the OpenAPI schema."""

    def create_response(self, request: HttpRequest, data: Any, **more: Any) -> HttpResponse:
        """Create a response that is not cached, nor shown by a browser as a page."""
        response = super().create_response(request, data, **more)
        for name, value in problems.HEADERS.items():
            response.headers[name] = value
        return response

    def get_openapi_schema(self, **more: Any) -> Any:
        """Return the schema with the encoding of names and the errors of operations."""
        schema = super().get_openapi_schema(**more)
        named = {name for _, router in self._routers for path in router.path_operations for name in _NAME.findall(path)}
        schema["components"]["schemas"]["Problem"] = problems.SCHEMA
        for operations in schema["paths"].values():
            for operation in operations.values():
                operation["responses"]["default"] = problems.RESPONSE
                for each in operation.get("parameters", ()):
                    if each["in"] == "path" and each["name"] in named:
                        each.setdefault("description", SEGMENT)
        return schema


api = SluiceApi(
    title="Sluice",
    version=VERSION,
    description=DESCRIPTION,
    docs=docs.SwaggerViewer(),
    parser=JsonParser(),
    urls_namespace="api",
)
problems.install(api)
for prefix, router in (
    ("/v1", metrics.router),
    ("/v1/destinations", destinations.router),
    ("/v1/queues", messages.router),
    ("/v1", messages.sending),
    ("/v1", tracing.router),
    ("/v1/searches", searches.router),
    ("/v1/jobs", jobs.router),
    ("/v1/dead-letters", dead_letters.router),
    ("/v1/scheduled", scheduled.router),
    ("/v1/transactions", transactions.router),
    ("/v1/routing", definitions.router),
    ("/v1/routing/drafts", drafts.router),
    ("/v1/routing", preview.router),
    ("/v1", clients.router),
    ("/v1/analyses", analyses.router),
    ("/v1/sql", sql.router),
    ("/v1/analyses", exports.router),
    ("/v1/reports", reports.router),
    ("/v1/audit", audit.router),
    ("/v1/alerts", alerts.router),
    ("/v1/objectives", objectives.router),
    ("/v1/checks", checks.router),
    ("/v1/nodes", nodes.router),
    ("/v1/shards", shards.router),
    ("/v1/networks", networks.router),
    ("/v1/backups", backups.router),
    ("/v1", users.router),
    ("/v1/groups", groups.router),
    ("/v1/effective", effective_rights.router),
    ("/v1/masking", masking.router),
):
    api.add_router(prefix, router)

patterns, app_name, namespace = api.urls
for pattern in patterns:
    if pattern.name != "openapi-view":  # the page is for people: they log in; the rest answers 401 by itself
        pattern.callback = login_not_required(problems.explain_methods(pattern.callback))
urls = (patterns, app_name, namespace)
