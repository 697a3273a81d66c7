"""The audit trail as an admin reads it."""

import pytest
from django.urls import reverse

from console.models import AuditEntry


@pytest.fixture
def entries(db):
    AuditEntry.objects.create(
        who="ada", address="::1", action="purge", object="queue://a", outcome="done", before={"QueueSize": 3}
    )
    AuditEntry.objects.create(
        who="bob", address="::1", action="define", object="virtualTopic:x", outcome="refused", detail="a loop"
    )


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["bob", "ada"]),
        ("?q=purge", ["ada"]),
        ("?outcome=refused", ["bob"]),
        ("?q=nothing", []),
        ("?outcome=x", ["bob", "ada"]),
    ],
)
def test_entries_are_listed_newest_first_and_filtered(query, expected, admin, entries):
    assert [entry.who for entry in admin.get(reverse("audit") + query).context["page"]] == expected


def test_an_entry_shows_before_and_the_reason(admin, entries):
    text = admin.get(reverse("audit")).content.decode()
    assert "&quot;QueueSize&quot;: 3" in text
    assert "a loop" in text
