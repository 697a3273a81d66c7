"""Serve the results of the command palette."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from brokerapp.model.destination import NAMED_KINDS
from console.access.permissions import Permission, permission_required, permissions_of, visible
from console.broker.mirror import mirror
from console.ui.navigation.command_palette import SHOWN, allowed_commands, matches_text, search_commands


@require_GET
@permission_required(Permission.SEE)
def palette(request: HttpRequest) -> HttpResponse:
    """Return matching commands and destinations that the user can see."""
    text = request.GET.get("q", "").strip()
    context = {"text": text, "commands": search_commands(text, allowed_commands(permissions_of(request.user)))}
    if text:
        sees = visible(request.user, Permission.SEE)
        everything = (each for each in mirror().current().stats if each.kind in NAMED_KINDS)
        fitting = [each for each in everything if matches_text(text, each.name) and sees(each)]
        context["destinations"] = sorted(fitting, key=lambda each: (len(each.name), each.name))[:SHOWN]
    return render(request, "layout/command_palette.html", context)
