"""Masking: what of a message reaches whom."""

import json

import pytest

from brokerapp.snapshot import BrowsedMessage
from console.masking import COVER, masked
from tests.console.conftest import make_user


def message(body: bytes, queue: str = "orders") -> BrowsedMessage:
    return BrowsedMessage(1, "m-1", f"/queue/{queue}", None, {"region": "eu"}, body, len(body))


def test_an_operator_reads_a_body_as_it_is(db):
    shown = masked(make_user("operator"), message(b"secret"))
    assert (shown.body, shown.withheld, shown.masked) == (b"secret", "", ())


def test_a_viewer_gets_no_byte_of_a_body(db):
    shown = masked(make_user("viewer"), message(b"secret"))
    assert (shown.body, shown.size) == (b"", 6)
    assert "read bodies" in shown.withheld


def test_support_gets_the_structure_of_json_and_no_value(db):
    shown = masked(make_user("support"), message(b'{"card": "4111", "lines": [{"n": 2}], "paid": true}'))
    assert json.loads(shown.body) == {"card": COVER, "lines": [{"n": COVER}], "paid": True}
    assert shown.masked


@pytest.mark.parametrize("body", [b"card 4111", b'"4111"', b"4111", b"\x00\xff", b"[" * 5000])
def test_support_gets_nothing_of_a_body_without_structure(body, db):
    shown = masked(make_user("support"), message(body))
    assert shown.body == b""
    assert shown.withheld


def test_a_scope_decides_where_bodies_are_read(db):
    user = make_user("operator", "orders.>")
    assert masked(user, message(b"secret", "orders.eu")).body == b"secret"
    assert masked(user, message(b"secret", "bills")).body == b""
