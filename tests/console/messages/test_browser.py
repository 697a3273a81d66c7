"""Test browsing without consuming: pages, selectors, and a message with its body in every format."""

import re
from dataclasses import replace

import pytest
from django.urls import reverse

from brokerapp.model.definitions import PolicyEntry
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import BrowsedMessage
from brokerapp.selectors import compile_selector
from console.broker.gateway import gateway
from console.messages.body_format import render_body
from console.messages.message_view import MessageView


@pytest.fixture
def orders(console, wait_for_mirror):
    """Sixty messages, every third from the US."""
    if not _depth("orders"):
        for number in range(60):
            console.send(
                "/queue/orders", f'{{"number": {number}}}', region="eu" if number % 3 else "us", number=str(number)
            )
    wait_for_mirror("orders", 60)
    return console


def _depth(name: str) -> int:
    from brokerapp.errors import DestinationNotFound

    try:
        return len(gateway().browse(Destination.queue(name), 0, 100, None).messages)
    except DestinationNotFound:
        return 0


def url(**query: str) -> str:
    return (
        reverse("messages", kwargs={"name": "orders"})
        + "?"
        + "&".join(f"{name}={value}" for name, value in query.items())
    )


def numbers(response) -> list[int]:
    return [int(row.message.headers["number"]) for row in response.context["rows"]]


def test_pages_follow_each_other_and_consume_nothing(browser_of, orders):
    support = browser_of("support")
    first = support.get(url())
    assert numbers(first) == list(range(50))
    second = support.get(reverse("messages", kwargs={"name": "orders"}) + first.context["newer"])
    assert numbers(second) == list(range(50, 60))
    assert second.context["newer"] is None
    assert _depth("orders") == 60


def test_only_the_beginning_of_a_queue_without_priorities_says_that_it_is_consumed_next(admin, orders):
    said, first = "consumed next", admin.get(url())
    assert said in first.content.decode()
    assert said not in admin.get(reverse("messages", args=["orders"]) + first.context["newer"]).content.decode()
    before = gateway().definitions()
    entry = PolicyEntry(Destination.queue("orders"), prioritized_messages=True)
    urgent = gateway().define(replace(before, policies=(entry,)), "test", "the urgent first")
    try:
        assert said not in admin.get(url()).content.decode()
    finally:
        gateway().define(replace(urgent, policies=before.policies), "test", "as before")


def test_a_page_that_follows_tells_no_range_and_what_comes_leads_to_pages_in_its_order(admin, orders):
    page = admin.get(url(end="1", follow="1", selector="region = 'us'")).content.decode()
    assert " shown of " not in page
    assert ", numbers " not in admin.get(url(end="1", follow="1")).content.decode()
    headers = {"HX-Request": "true", "HX-Target": "follow"}
    came = admin.get(url(selector="region = 'us'", after="1"), headers=headers).content.decode()
    queries = {each.partition("id=")[0] for each in re.findall(r'href="[^"?]*(\?[^"]*)"', came)}
    assert queries == {"?selector=region+%3D+%27us%27&amp;end=1&amp;"}
    assert queries == {each.partition("id=")[0] for each in re.findall(r'hx-get="[^"?]*/\d+/?(\?[^"]*)"', page)}


def test_a_selector_filters_and_says_how_many_were_looked_at(admin, orders):
    response = admin.get(url(selector="region = 'us' AND number < 10"))
    assert numbers(response) == [0, 3, 6, 9]
    assert "4 matches in 60 scanned messages" in response.content.decode()


def test_properties_that_the_selector_names_come_first():
    headers = dict.fromkeys(("amount", "batch", "customer", "region"), "1")
    listed = MessageView(
        BrowsedMessage(1, "ID:1", "/queue/a", None, headers, b"", 0), compile_selector("region = '1'").properties
    )
    assert [name for name, _ in listed.preview_properties] == ["region", "amount", "batch"]


def test_a_selector_that_matches_nothing_is_told_from_an_empty_queue(admin, orders):
    assert "No matching messages" in admin.get(url(selector="region = 'mars'")).content.decode()


def test_a_wrong_selector_is_shown_with_the_place_and_the_reason(admin, orders):
    response = admin.get(url(selector="region = 'us"))
    assert response.context["wrong"].column == len("region = ") + 1, "people count from 1"
    text = response.content.decode()
    assert "At position 10: " in text
    assert "region = <mark>&#x27;us</mark>" in text


@pytest.mark.parametrize(
    ("selector", "said"), [("region = 'us'", "Valid selector."), ("region = 'us", "At position 10: "), ("", "")]
)
def test_a_selector_is_judged_while_one_types_and_nothing_is_looked_for(selector, said, admin, orders, monkeypatch):
    monkeypatch.setattr(gateway(), "browse", None)
    typing = {"HX-Request": "true", "HX-Target": "selector-state"}
    response = admin.get(reverse("messages", kwargs={"name": "orders"}), {"selector": selector}, headers=typing)
    assert said in (text := response.content.decode().strip())
    assert bool(said) == bool(text)


def test_a_message_opens_beside_the_list_under_its_own_address(admin, orders):
    row = admin.get(url()).context["rows"][1]
    address = reverse("message", kwargs={"name": "orders", "seq": row.message.seq})
    panel = admin.get(address, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in panel
    assert "&quot;number&quot;: 1" in panel
    whole = admin.get(address)
    assert whole.context["selected"] == row.message.seq
    assert dict(whole.context["row"].properties)["region"] == "eu"


def test_a_message_that_is_gone_is_said_to_be_gone(admin, orders):
    address = reverse("message", kwargs={"name": "orders", "seq": 999_999})
    assert admin.get(address).status_code == 404
    assert (
        "It was consumed, deleted or has expired" in admin.get(address, headers={"HX-Request": "true"}).content.decode()
    )


def test_a_queue_that_does_not_exist_is_not_found(admin, console):
    assert admin.get(reverse("messages", kwargs={"name": "never.was"})).status_code == 404


def test_what_a_message_holds_is_shown_and_never_run(admin, console, wait_for_mirror):
    console.send("/queue/hostile", "<script>alert(1)</script>", trick="<img src=x onerror=alert(2)>")
    wait_for_mirror("hostile", 1)
    text = admin.get(reverse("messages", kwargs={"name": "hostile"})).content.decode()
    assert "<img src=x" not in text
    seq = gateway().browse(Destination.queue("hostile"), 0, 1, None).messages[0].seq
    panel = admin.get(reverse("message", kwargs={"name": "hostile", "seq": seq})).content.decode()
    assert "<script>alert" not in panel
    assert "&lt;script&gt;alert(1)" in panel


BODIES = [
    ("json", b'{"a": [1, 2]}', ["json", "text", "hex"]),
    ("json that does not end", b'{"a": [1, 2', ["text", "hex"]),
    ("xml", b"<a><b>1</b></a>", ["xml", "text", "hex"]),
    ("not quite xml", b"<a><b>1</a>", ["text", "hex"]),
    ("words", "Grüße".encode(), ["text", "hex"]),
    ("bytes", bytes(range(256)), ["hex"]),
    ("zeros are no text", b"\0\0\0\0", ["hex"]),
    ("deep json", b"[" * 100_000, ["text", "hex"]),
    ("nothing", b"", ["text", "hex"]),
]


@pytest.mark.parametrize(("body", "expected"), [each[1:] for each in BODIES], ids=[each[0] for each in BODIES])
def test_a_body_is_read_in_the_ways_that_fit(body, expected):
    assert [each.name for each in render_body(body)] == expected


def test_json_and_xml_are_set_out_over_lines():
    assert render_body(b'{"a":[1]}')[0].text == '{\n  "a": [\n    1\n  ]\n}'
    assert render_body(b"<a><b>1</b></a>")[0].text == "<a>\n  <b>1</b>\n</a>"


def test_hex_shows_offset_bytes_and_letters():
    line = render_body(b"Hello, \xff\0World!")[-1].text
    assert line == "00000000  48 65 6c 6c 6f 2c 20 ff  00 57 6f 72 6c 64 21     Hello, ..World!"


def test_an_entity_in_xml_is_not_resolved():
    [first, *_] = render_body(b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>')
    assert "root:" not in first.text


def test_a_large_text_is_cut_between_characters_and_says_so():
    text = render_body(("ü" * 200_000).encode())[0]
    assert text.name == "text"
    assert set(text.text) == {"ü"}
    assert "of 400,000 bytes" in text.note
