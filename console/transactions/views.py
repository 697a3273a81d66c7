"""Page of prepared transactions."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from brokerapp.errors import TransactionNotFound
from console.access.permissions import Permission, permission_required
from console.transactions import service


@require_GET
@permission_required(Permission.BROWSE)
def transactions(request: HttpRequest) -> HttpResponse:
    """Show prepared transactions, oldest first."""
    rows, hidden = service.prepared(request.user)
    return render(request, "transactions/transactions.html", {"rows": rows, "hidden": hidden})


@require_POST
@permission_required(Permission.REMOVE)
def commit(request: HttpRequest) -> HttpResponse:
    """Commit a prepared transaction."""
    return _end(request, commit=True)


@require_POST
@permission_required(Permission.REMOVE)
def roll_back(request: HttpRequest) -> HttpResponse:
    """Roll back a prepared transaction."""
    return _end(request, commit=False)


def _end(request: HttpRequest, *, commit: bool) -> HttpResponse:
    try:
        service.end(request, request.POST.get("transaction", ""), commit=commit)
    except TransactionNotFound:
        messages.error(request, "Prepared transaction not found. It was committed or rolled back.")
    else:
        messages.success(request, f"Transaction {'committed' if commit else 'rolled back'}.")
    return redirect("transactions")
