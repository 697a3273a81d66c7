"""A page's chart again, when its tab comes back after it lost the socket, or shows a day of which a minute went by."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_GET

from brokerapp.model.destination import Destination, DestinationKind
from console.access.permissions import Permission, destination_from_url, permission_required
from console.metrics.charts.chart_data import chart_of, window_of


@require_GET
@permission_required(Permission.SEE)
def chart(request: HttpRequest) -> JsonResponse:
    """Return the chart of the broker."""
    return JsonResponse(chart_of(request, window_of(request)))


@require_GET
@permission_required(Permission.SEE, destination_from_url)
def destination_chart(request: HttpRequest, kind: str, name: str) -> JsonResponse:
    """Return the chart of one destination."""
    return JsonResponse(chart_of(request, window_of(request), Destination(DestinationKind(kind), name)))
