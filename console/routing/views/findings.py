"""List unused, shadowed or ineffective routing definitions, each with the next step."""

from __future__ import annotations

from itertools import groupby
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from console.access.permissions import Permission, pattern_filter, permission_required, visible
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.broker.snapshot import visible_snapshot
from console.routing.definitions.visibility import visible_definitions
from console.routing.map.findings import RoutingFindingKind, find_routing_issues

PAGE_SIZE = 50


@require_GET
@permission_required(Permission.SEE)
def findings(request: HttpRequest) -> HttpResponse:
    """List all issues by kind, or those of the kind that `sort` names."""
    stats = visible_snapshot(mirror().current(), visible(request.user)).stats
    found = find_routing_issues(visible_definitions(gateway().definitions(), pattern_filter(request.user)), stats)
    wanted = request.GET.get("sort", "")
    chips = [(each.name.lower(), each, sum(one.kind is each for one in found)) for each in RoutingFindingKind]
    shown = [each for each in found if each.kind.name.lower() == wanted] if wanted else found
    page = Paginator(shown, PAGE_SIZE).get_page(request.GET.get("page"))
    groups = [(sort, list(each)) for sort, each in groupby(page.object_list, key=lambda one: one.kind)]
    context = {"groups": groups, "page": page, "chips": chips, "wanted": wanted, "total": len(found)}
    context["page_query"] = urlencode({"sort": wanted}) if wanted else ""
    return render(request, "routing/findings.html", context)
