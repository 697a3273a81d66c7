"""Mark queues, topics, subscriptions and clients as favorites of a user.

A subject is a kind and a name, `queue://orders`. A connection has another id each time that it is made, so its star is
on the client-id. A subscription that has no name ends with its connection and has no star.
"""

from __future__ import annotations

from urllib.parse import urlencode

from django.urls import reverse

from brokerapp.errors import RequestRefused
from brokerapp.model.destination import DestinationKind
from console.access.permissions import AnyUser
from console.ui.preferences.models import Star

#: The kind of a subject that is a client rather than a destination.
CLIENT = "client"
#: The list in which things of each kind are found again.
_LISTS = {
    DestinationKind.QUEUE: "queues",
    DestinationKind.TOPIC: "topics",
    DestinationKind.SUBSCRIPTION: "subscribers",
    CLIENT: "connections",
}
_BETWEEN = "://"


def client_subject(name: str) -> str:
    """Return the subject of the client with this name."""
    return f"{CLIENT}{_BETWEEN}{name}"


def favourites_of(user: AnyUser) -> frozenset[str]:
    """Return the subjects of a user's favorites."""
    return frozenset(Star.objects.filter(user=user).values_list("subject", flat=True))


def toggle(user: AnyUser, subject: str) -> bool:
    """Add or remove a favorite; return whether it is one now. Raises RequestRefused."""
    _parse_subject(subject)
    if Star.objects.filter(user=user, subject=subject).delete()[0]:
        return False
    Star.objects.get_or_create(user=user, subject=subject)
    return True


def subject_name(subject: str) -> str:
    """Return the name in a subject. Raises RequestRefused."""
    return _parse_subject(subject)[1]


def list_url(subject: str) -> str:
    """Return the URL of the subject's list, filtered by favorites. Raises RequestRefused."""
    kind, _ = _parse_subject(subject)
    return f"{reverse(_LISTS[kind])}?{urlencode({'show': 'starred'})}"


def _parse_subject(subject: str) -> tuple[str, str]:
    kind, _, name = subject.partition(_BETWEEN)
    if kind not in _LISTS or not name:
        known = ", ".join(_LISTS)
        raise RequestRefused(f"{subject[:80]!r} cannot be a favorite. Use KIND://NAME, with one of the kinds {known}.")
    if len(subject) > Star.MAX_SUBJECT:
        raise RequestRefused(
            f"A name of {len(subject):,} characters cannot be a favorite. The maximum is {Star.MAX_SUBJECT:,}."
        )
    return kind, name
