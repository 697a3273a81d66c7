"""Show the shards of the store and the families of each; add, drain and remove shards; move families."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from brokerapp.admin.shards import ShardStatus
from brokerapp.engine.sharding.placement import FIRST_SHARD
from brokerapp.errors import BrokerError
from brokerapp.model.destination import Destination
from brokerapp.store.shards.record import DRAINING, JOINING, SERVING
from brokerapp.system.store_address import without_password
from console.access.permissions import Permission, permission_required, require_everywhere, visible
from console.access.roles import everything
from console.topology import shard_changes
from console.topology.refusals import refusals_shown, sentence_of
from console.ui.formatting.number_format import format_integer, pluralize_count

#: Families on one page.
PAGE_SIZE = 50
#: Look of the badge of each state.
BADGES = {JOINING: "note", SERVING: "good", DRAINING: "look"}


@require_GET
@permission_required(Permission.SEE)
def shards(request: HttpRequest) -> HttpResponse:
    """Show the shards of the store."""
    found = shard_changes.all_shards()
    context = {
        "rows": [(each, f"shard {each.number}", BADGES[each.state], _percent(each)) for each in found],
        "first": FIRST_SHARD, "sees_all": visible(request.user) is everything,
    }  # fmt: skip
    return render(request, "topology/shards/shards.html", context)


def _percent(status: ShardStatus) -> int | None:
    """Return the usage of a shard's limit; None for one without limit."""
    return min(100, round(100 * status.used / status.limit)) if status.limit and status.answers else None


@require_GET
@permission_required(Permission.SEE)
def shard(request: HttpRequest, number: int) -> HttpResponse:
    """Show a shard and the families in it, those with the most bytes first."""
    all_shards = shard_changes.all_shards()
    status = shard_changes.get_shard_or_404(number, all_shards)
    families, hidden = shard_changes.families_of(request, number) if status.answers else ([], 0)
    text = request.GET.get("q", "").strip()
    page = Paginator([each for each in families if text.lower() in each.family.lower()], PAGE_SIZE).get_page(
        request.GET.get("page")
    )
    context = {
        "status": status, "badge": BADGES[status.state], "page": page, "text": text, "total": len(families),
        "hidden": hidden, "page_size": PAGE_SIZE, "page_query": urlencode({"q": text}) if text else "",
        "targets": [each.number for each in all_shards if each.number != number and each.state == SERVING],
    }  # fmt: skip
    return render(request, "topology/shards/shard.html", context)


# -- changes


@require_http_methods(["GET", "POST"])
@permission_required(Permission.SHARDS)
def add(request: HttpRequest) -> HttpResponse:
    """Add a store as a shard."""
    require_everywhere(request, Permission.SHARDS)
    url, error = request.POST.get("url", "").strip(), ""
    if request.method == "POST":
        try:
            number, serving = shard_changes.add_shard(request, url)
            state = "All nodes serve it." if serving else "The nodes do not serve it yet: see their logs."
            messages.success(request, f"Shard {number} added. {state}")
            return redirect("shards")
        except BrokerError as refused:
            error = sentence_of(refused)
    is_secret = bool(url) and without_password(url) != url
    context = {"url": "" if is_secret else url, "error": error}
    return render(request, "topology/shards/shard_form.html", context, status=400 if error else 200)


@require_POST
@permission_required(Permission.SHARDS)
def change(request: HttpRequest, number: int, action: str) -> HttpResponse:
    """Drain a shard, let it serve again, or remove it."""
    if action not in ("drain", "stop-draining", "remove"):
        raise Http404(f"Unknown shard action {action}.")
    with refusals_shown(request):
        if action == "remove":
            shard_changes.remove_shard(request, number)
            messages.success(request, f"Shard {number} removed.")
        elif action == "drain":
            shard_changes.drain_shard(request, number, draining=True)
            messages.success(request, f"Shard {number} is draining. Its families are moved to other shards.")
        else:
            shard_changes.drain_shard(request, number, draining=False)
            messages.success(request, f"Shard {number} is serving.")
    return redirect("shards")


@require_POST
@permission_required(Permission.SHARDS)
def move(request: HttpRequest) -> HttpResponse:
    """Move a family to another shard, and return to the shard that it was in."""
    family, source, target = (request.POST.get(name, "").strip() for name in ("family", "source", "target"))
    if not target.isdecimal():
        raise Http404("The target must be the number of a shard.")
    with refusals_shown(request):
        done = shard_changes.move_family(request, family, int(target))
        moved, held = pluralize_count(done["messages"], "message"), format_integer(done["milliseconds"])
        named = Destination.parse(done["family"])
        messages.success(
            request, f"Family of {named.kind} {named.name} moved to shard {target}: {moved}, paused for {held} ms."
        )
    return redirect("shard", int(source)) if source.isdecimal() else redirect("shards")
