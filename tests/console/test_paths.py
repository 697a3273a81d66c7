"""Names of all kinds in addresses: each leads where it should, whatever pages and operations are called."""

import asyncio
from urllib.parse import quote, unquote, urlsplit

import pytest
from django.urls import resolve, reverse
from hypothesis import example, given
from hypothesis import strategies as st

from brokerapp.destination import Destination
from brokerapp.errors import DestinationNotFound
from console.gateway import gateway
from console.live.mirror import mirror
from console.paths import with_slashes
from tests.conftest import until

LETTERS = st.characters(exclude_categories=("Cc", "Cs")) | st.sampled_from("/%?#.*>:~ &=+é漢")
NAMES = st.text(LETTERS, min_size=1, max_size=60)
SHADOWED = (
    "x/messages",
    "a/b/purge",
    "messages/1/body",
    "x/delete",
    "x/",
    "/x",
    "//",
    ".",
    "..",
    "new",
    "bulk",
    "a/../b",
)
#: Pages of a name, and what else their addresses name.
PAGES = [
    ("queue", "name", {}), ("topic", "name", {}), ("messages", "name", {}), ("act", "name", {}),
    ("message", "name", {"seq": 7}),
    ("message-body", "name", {"seq": 7}), ("purge", "name", {}), ("delete-queue", "name", {}),
    ("delete-topic", "name", {}),
    ("queue-chart", "name", {}), ("kept", "log", {}), ("delete-subscription", "log", {}),
    ("connector", "connector", {}),
    ("message-page", "id", {}), ("message-fate", "id", {}),
]  # fmt: skip


@pytest.mark.parametrize(("page", "argument", "more"), PAGES, ids=[each[0] for each in PAGES])
@given(name=NAMES)
@example(name="x/messages")
@example(name="a~1b")
@example(name="..")
@example(name="100%41/é::>")
def test_the_address_of_a_page_leads_to_the_page_of_that_name(page, argument, more, name):
    address = reverse(page, kwargs={argument: name} | more)
    assert address == urlsplit(address).path, "nothing of a name is a query or a fragment"
    assert not {".", ".."} & set(address.split("/")), "browsers take those for ways up"
    found = resolve(unquote(address))
    assert (found.url_name, found.kwargs[argument]) == (page, name)


def test_an_address_with_bare_slashes_in_a_name_leads_to_the_page_of_that_name(admin, console):
    for old, new in (
        ("/queues/in/eu/", "/queues/in~1eu/"),
        ("/queues/in/eu/messages/?end=1", "/queues/in~1eu/messages/?end=1"),
        ("/queues/in/eu/de/messages/7/", "/queues/in~1eu~1de/messages/7/"),
        ("/topics/in/%C3%A9%3F/", "/topics/in~1%C3%A9%3F/"),
    ):
        answer = admin.get(old)
        assert (answer.status_code, answer["Location"]) == (302, new)
    assert admin.post("/queues/in/eu/purge").status_code == 404, "nothing is done by an old address"
    assert admin.get("/queues/in/eu/nothing").status_code == 404
    assert admin.get("/nothing/in/eu/").status_code == 404


def test_pages_and_operations_of_queues_called_like_pages_are_reached(admin, console):
    mirror()
    for name in SHADOWED:
        gateway().create(Destination.queue(name))
    until(lambda: {*map(Destination.queue, SHADOWED)} <= mirror().current().stats.keys(), "all in the picture")
    for name in SHADOWED:
        queue, segment = Destination.queue(name), _segment(name)
        assert admin.get(reverse("messages", kwargs={"name": name})).context["destination"] == queue
        assert admin.get(reverse("queue", kwargs={"name": name})).context["destination"] == queue
        assert admin.get(f"/api/v1/queues/{segment}/messages").json()["items"] == []
        assert admin.get(f"/api/v1/destinations/queue/{segment}").json()["name"] == name
        assert admin.delete(f"/api/v1/destinations/queue/{segment}").status_code == 200
        with pytest.raises(DestinationNotFound):
            gateway().browse(queue, 0, 1, None)
    assert admin.get(reverse("new-queue")).status_code == 200


def _segment(name: str) -> str:
    """The name as it stands in addresses."""
    return reverse("queue", kwargs={"name": name}).removeprefix("/queues/").removesuffix("/")


@given(name=NAMES.filter(lambda each: "~" not in each and each not in (".", "..")))
def test_a_program_may_percent_encode_a_name_as_everywhere(name):
    seen = []

    async def application(scope, receive, send):
        seen.append(resolve(scope["path"]).kwargs)

    raw = f"/queues/{quote(name, safe='')}/messages/".encode()
    asyncio.run(with_slashes(application)({"type": "http", "raw_path": raw, "path": unquote(raw.decode())}, None, None))
    assert seen == [{"name": name}]
