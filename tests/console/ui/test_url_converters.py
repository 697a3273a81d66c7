"""Test names of all kinds in URLs."""

import asyncio
from urllib.parse import quote, unquote, urlsplit

import pytest
from django.urls import resolve, reverse
from hypothesis import example, given, settings
from hypothesis import strategies as st

from console.ui.url_converters import keep_encoded_slashes

LETTERS = st.characters(exclude_categories=("Cc", "Cs")) | st.sampled_from("/%?#.*>:~ &=+é漢")
NAMES = st.text(LETTERS, min_size=1, max_size=60)
#: Pages of a name, and what else their addresses name.
PAGES = [
    ("queue", "name", {}), ("topic", "name", {}), ("messages", "name", {}), ("message-action", "name", {}),
    ("message", "name", {"seq": 7}),
    ("message-body", "name", {"seq": 7}), ("purge", "name", {}), ("delete-queue", "name", {}),
    ("delete-topic", "name", {}),
    ("queue-chart", "name", {}), ("subscription-messages", "log", {}), ("delete-subscription", "log", {}),
    ("connector", "connector", {}),
    ("message-page", "id", {}), ("resubmit-outcome", "id", {}),
]  # fmt: skip


@pytest.mark.parametrize(("page", "argument", "more"), PAGES, ids=[each[0] for each in PAGES])
@settings(max_examples=40, deadline=None)  # the first one loads all pages
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


@settings(max_examples=40, deadline=None)  # the first one loads all pages
@given(name=NAMES.filter(lambda each: "~" not in each and each not in (".", "..")))
def test_a_program_may_percent_encode_a_name_as_everywhere(name):
    seen = []

    async def application(scope, receive, send):
        seen.append(resolve(scope["path"]).kwargs)

    raw = f"/queues/{quote(name, safe='')}/messages/".encode()
    asyncio.run(
        keep_encoded_slashes(application)({"type": "http", "raw_path": raw, "path": unquote(raw.decode())}, None, None)
    )
    assert seen == [{"name": name}]
