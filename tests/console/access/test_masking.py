"""Test which parts of a message are masked for whom."""

import json
from dataclasses import replace
from functools import partial

import pytest
from django.urls import reverse

from brokerapp.engine.policy.broker_headers import CAUSE, EARLIER_CAUSE, FIRST_FAILED_AT, with_broker_headers
from brokerapp.engine.policy.dead_letters import DeadLetterInfo, dead_letter
from brokerapp.errors import RequestRefused
from brokerapp.model.definitions import DeadLetterStrategy
from brokerapp.model.destination import Destination
from brokerapp.model.jms.form import JMS_HEADER
from brokerapp.model.message import Message
from brokerapp.model.stats_records import BrowsedMessage
from brokerapp.openwire.marshalled_values import Long, decode_map, decode_stream, encode_map, encode_stream
from console.access.masking import check_selector, mask_message
from console.access.masking_rules import COVER, MAX_BODY
from console.access.models import MaskingRule
from console.audit.models import AuditEntry
from console.messages.message_view import MessageView
from console.messages.search.lookup import matching_messages
from tests.console.conftest import make_user


def message(body: bytes, queue: str = "orders") -> BrowsedMessage:
    return BrowsedMessage(1, "m-1", f"/queue/{queue}", None, {"region": "eu"}, body, len(body))


def test_an_operator_reads_a_body_as_it_is(db):
    shown = mask_message(make_user("operator"), message(b"secret"))
    assert (shown.body, shown.withheld, shown.masked) == (b"secret", "", ())


def test_a_viewer_gets_no_byte_of_a_body(db):
    shown = mask_message(make_user("viewer"), message(b"secret"))
    assert (shown.body, shown.size) == (b"", 6)
    assert "read message bodies" in shown.withheld


def test_support_gets_the_structure_of_json_and_no_value(db):
    shown = mask_message(
        make_user("support"), message(b'{"card": "4111", "lines": [{"n": 2}], "paid": true, "note": null}')
    )
    assert json.loads(shown.body) == {"card": COVER, "lines": [{"n": COVER}], "paid": COVER, "note": None}
    assert shown.masked


@pytest.mark.parametrize("body", [b"card 4111", b'"4111"', b"4111", b"\x00\xff", b"[" * 5000])
def test_support_gets_nothing_of_a_body_without_structure(body, db):
    shown = mask_message(make_user("support"), message(body))
    assert shown.body == b""
    assert shown.withheld


def test_a_scope_decides_where_bodies_are_read(db):
    user = make_user("operator", "orders.>")
    assert mask_message(user, message(b"secret", "orders.eu")).body == b"secret"
    assert mask_message(user, message(b"secret", "bills")).body == b""


def rule(**facts: str) -> None:
    MaskingRule.objects.create(**{"role": "", "scope": ">", "place": "json", "action": "last4", **facts})


BODY = b'{"card": "4111222233334444", "lines": [{"sku": "x", "price": 12}], "who": {"card": "5555666677778888"}}'


def read(role: str, body: bytes = BODY) -> str:
    return mask_message(make_user(role), message(body)).body.decode()


@pytest.mark.parametrize(
    ("facts", "there", "gone"),
    [
        ({"pattern": "$.card"}, ["••••4444", "5555666677778888"], ["4111222233334444"]),
        ({"pattern": "$..card"}, ["••••4444", "••••8888"], ["41112222", "55556666"]),
        ({"pattern": "card", "action": "remove"}, ["lines"], ["card", "4444", "8888"]),
        ({"pattern": "$.lines[*].price", "action": "replace", "replacement": "n/a"}, ['"price": "n/a"'], ["12}"]),
        ({"pattern": "$.lines[0]", "action": "replace"}, [COVER], ["sku"]),
        ({"pattern": "$.who", "action": "last4"}, ["••••8888", "4111222233334444"], ["5555"]),
        ({"pattern": r"\d{16}", "place": "body", "action": "replace", "replacement": "X"}, ['"card": "X"'], ["4111"]),
        ({"pattern": "$.card", "role": "support"}, ["4111222233334444"], ["••••"]),
        ({"pattern": "$.card", "scope": "bills.>"}, ["4111222233334444"], ["••••"]),
        ({"pattern": "$.nothing"}, ["4111222233334444"], ["••••"]),
    ],
)
def test_a_rule_takes_from_an_operator_what_it_finds(facts, there, gone, db):
    rule(**facts)
    text = read("operator")
    assert all(each in text for each in there)
    assert not any(each in text for each in gone)


def test_the_first_rule_about_a_place_counts(db):
    rule(pattern="$.card", action="replace", replacement="second", order=2)
    rule(pattern="$.card", action="replace", replacement="first", order=1)
    assert '"card": "first"' in read("operator")


def test_a_rule_shows_support_a_value_and_leaves_the_rest_covered(db):
    rule(role="support", pattern="$.lines", action="show")
    rule(role="support", pattern="$..card", action="last4")
    assert json.loads(read("support")) == {
        "card": "••••4444",
        "lines": [{"sku": "x", "price": 12}],
        "who": {"card": "••••8888"},
    }


def test_a_rule_shows_support_whole_bodies_where_they_are_harmless(db):
    rule(role="support", place="body", pattern="", action="show")
    assert read("support", b"plain text") == "plain text"


def test_a_header_is_masked_by_its_name_and_those_that_pages_need_are_not(db):
    rule(place="header", pattern="reg*", action="remove")
    rule(place="header", pattern="*", action="last4", order=1)
    one = replace(message(b""), headers={"Region": "eu", "customer": "123456789", "message-id": "m-1"})
    shown = mask_message(make_user("admin"), one)
    assert shown.headers == {"customer": "••••6789", "message-id": "m-1"}
    assert shown.masked == ("Region", "customer")


def test_the_cause_of_a_failure_is_masked_also_where_a_resubmission_repeats_it(db):
    rule(place="header", pattern=CAUSE.lower(), action="remove")
    said = {CAUSE: "card 4111 refused", EARLIER_CAUSE: "card 4111 refused", FIRST_FAILED_AT: "1"}
    shown = mask_message(make_user("admin"), replace(message(b""), headers=said))
    assert (shown.headers, shown.masked) == ({FIRST_FAILED_AT: "1"}, (CAUSE, EARLIER_CAUSE))


def test_what_a_search_finds_says_nothing_that_is_masked(db):
    rule(place="header", pattern=CAUSE, action="remove")
    said, place = {"order": "4711", CAUSE: "card 4111 refused"}, Destination.queue("ActiveMQ.DLQ")
    dead = replace(message(b"", place.name), headers=said | with_broker_headers({}, said))
    [hit] = matching_messages([dead], place, True, "4711", ("order",), partial(mask_message, make_user("admin")))
    assert (hit.why, hit.cause) == ("order", "")


@pytest.mark.parametrize(
    "facts",
    [
        {"original_destination": "/queue/orders.eu"},
        {"original_destination": "/queue/parked.in", "came_from": "/queue/orders.eu"},
        {"came_from": "/queue/other", "headers": {"dlqRoute": "/topic/all,/queue/orders.eu"}},
        {"came_from": "/queue/parked", "headers": {"dlqRoute": ",,/queue/,/queue/orders.eu,/queue/parked"}},
    ],
)
def test_what_is_masked_where_it_failed_is_masked_among_the_dead_letters_and_where_they_are_moved_to(facts, db):
    rule(scope="orders.>", pattern="card")
    dead = replace(message(BODY, "ActiveMQ.DLQ"), **facts)
    assert b"4111" not in mask_message(make_user("operator"), dead, Destination.queue("ActiveMQ.DLQ")).body


def test_a_rule_about_all_headers_leaves_what_says_which_of_them_are_the_brokers(db):
    rule(place="header", pattern="*", action="replace")
    said = {"resubmitCount": "2", "original-destination": "/queue/a", "sluice-wrote": "dlqTime"}
    shown = MessageView(mask_message(make_user("admin"), replace(message(b""), headers=said)))
    assert (shown.broker_properties, shown.resubmit_count) == ({}, 0)
    covered = MessageView(replace(shown.message, headers={**shown.message.headers, "sluice-wrote": "resubmitCount"}))
    assert (covered.broker_properties, covered.resubmit_count) == ({"resubmitCount": COVER}, 0)


def test_what_a_consumer_parks_with_all_it_says_stays_masked_however_often_it_fails_again(db):
    rule(scope="orders.>", pattern="card")
    parked = Message("m-1", b"message-id:m-1\ndlqRoute:/queue/orders.eu\n", BODY, persistent=True)
    operator = make_user("operator")
    for queue in ("parked", "parked.again"):
        death = DeadLetterInfo("rejected", Destination.queue(queue), "", 5, 1, "")
        parked = dead_letter(parked, death, DeadLetterStrategy())
        dead = replace(message(BODY, "ActiveMQ.DLQ"), headers=parked.headers, came_from=death.source.stomp)
        assert b"4111" not in mask_message(operator, dead, Destination.queue("ActiveMQ.DLQ")).body


@pytest.mark.parametrize(
    ("facts", "body"),
    [
        ({"pattern": "$.card"}, b'{"card": "4111",'),
        ({"pattern": r"\d+", "place": "body"}, b"\xff4111"),
        ({"pattern": r"(\d+)+\d=", "place": "body"}, b"4111" * 50_000 + b"x="),
        ({"pattern": "$..a..a..a..card"}, b'{"a":' * 100 + b'{"card":"4111"}' + b"}" * 100),
        ({"pattern": "$.card"}, b'{"card": "4111' + b" " * MAX_BODY + b'"}'),
        ({"pattern": "$..card"}, b'{"a":' * 900 + b'{"card":"4111"}' + b"}" * 900),
    ],
)
def test_a_body_in_which_nothing_can_be_found_is_withheld(facts, body, db):
    rule(**facts)
    shown = mask_message(make_user("operator"), message(body))
    assert b"4111" not in shown.body
    assert shown.withheld or b"\xe2\x80\xa2" in shown.body


def test_a_change_of_the_rules_counts_at_once_and_one_that_is_off_does_not(db):
    user = make_user("operator")
    rule(pattern="card")
    assert b"4111" not in mask_message(user, message(BODY)).body
    MaskingRule.objects.update(active=False)
    MaskingRule.objects.first().save()
    assert b"4111" in mask_message(user, message(BODY)).body


@pytest.mark.parametrize(
    ("role", "selector"),
    [("operator", "customer = 5"), ("operator", "JMSCorrelationID LIKE 'a%'"), ("support", "XPATH '//card'")],
)
def test_a_selector_cannot_ask_for_what_is_masked(role, selector, db):
    rule(place="header", pattern="cust*", action="remove")
    rule(place="header", pattern="correlation-id", action="remove")
    user = make_user(role)
    check_selector(user, "region = 'eu'", Destination.queue("orders"))
    with pytest.raises(RequestRefused, match="masked"):
        check_selector(user, selector, Destination.queue("orders"))


@pytest.mark.parametrize(
    "facts",
    [
        {"pattern": "$.a[", "place": "json"},
        {"pattern": "", "place": "json"},
        {"pattern": "(", "place": "body"},
        {"pattern": "", "place": "body"},
        {"pattern": "", "place": "header"},
        {"pattern": "x", "place": "header", "action": "show"},
        {"pattern": "x", "place": "nowhere"},
        {"pattern": "x", "role": "king"},
        {"pattern": "x", "scope": "temp-queue://x"},
    ],
)
def test_a_rule_that_could_not_work_is_refused(facts, admin):
    typed = {"role": "support", "scope": ">", "place": "json", "action": "remove", **facts}
    response = admin.post(reverse("new-masking-rule"), typed)
    assert response.status_code == 400
    assert response.context["error"]
    assert not MaskingRule.objects.exists()


def test_a_rule_is_tested_on_a_sample_and_then_put_in_force(admin):
    typed = {"role": "support", "scope": "", "place": "json", "pattern": "$..card", "action": "last4"}
    sample = {"sample_destination": "queue://orders", "sample_headers": "a: b", "sample_body": '{"card": "123456"}'}
    result = admin.post(reverse("new-masking-rule"), {**typed, **sample, "test": "1"}).context["result"]
    assert (COVER in result["now"]["text"], "••••3456" in result["then"]["text"]) == (True, True)
    assert not MaskingRule.objects.exists()
    assert admin.post(reverse("new-masking-rule"), typed).status_code == 302
    made = MaskingRule.objects.get()
    assert AuditEntry.objects.get().after["pattern"] == "$..card"
    for action, left in (("switch", 1), ("first", 1), ("delete", 0)):
        admin.post(reverse("change-masking-rule", kwargs={"rule_id": made.pk, "action": action}))
        assert MaskingRule.objects.count() == left
    assert AuditEntry.objects.count() == 4


# -- messages of JMS clients


def jms_message(kind: str, body: bytes, **properties: str) -> BrowsedMessage:
    return replace(message(body), headers={"region": "eu", JMS_HEADER: kind, **properties})


MAP = encode_map({"card": "4111 2222", "n": Long(5), "who": {"card": 7, "raw": b"\xff"}, "none": None})


@pytest.mark.parametrize(
    ("facts", "values"),
    [
        (("json", "$..card", "replace"), {"card": COVER, "n": Long(5), "who": {"card": COVER, "raw": b"\xff"}}),
        (("json", "$.card", "remove"), {"n": Long(5), "who": {"card": 7, "raw": b"\xff"}}),
        (("json", "who", "last4"), {"card": "4111 2222", "n": Long(5), "who": {"card": COVER, "raw": COVER}}),
        (("body", r"\d{4} \d{4}", "last4"), {"card": f"{COVER}2222", "n": Long(5), "who": {"card": 7, "raw": COVER}}),
    ],
)
def test_rules_find_entries_of_a_map_message_as_values_of_json(facts, values, db):
    place, pattern, action = facts
    MaskingRule.objects.create(place=place, pattern=pattern, action=action)
    shown = mask_message(make_user("operator"), jms_message("map", MAP))
    found = decode_map(shown.body)
    assert found == values | {"none": None}
    assert type(found["n"]) is Long
    assert shown.masked


@pytest.mark.parametrize(
    ("value", "shown_value"),
    [
        (Long(4111222233334444), f"{COVER}4444"),
        (b"card 4111222233334444", f"card {COVER}4444".encode()),
        ({"4111222233334444": [1.5, True]}, {f"{COVER}4444": [1.5, True]}),
        (b"\xff4111222233334444", COVER),
    ],
)
def test_a_regular_expression_finds_numbers_names_and_bytes_of_a_map_message_as_text(value, shown_value, db):
    MaskingRule.objects.create(place="body", pattern=r"\d{16}", action="last4")
    shown = mask_message(make_user("operator"), jms_message("map", encode_map({"value": value})))
    assert decode_map(shown.body) == {"value": shown_value}
    assert shown.masked


def test_support_gets_the_names_of_entries_and_values_of_a_stream_covered(db):
    support = make_user("support")
    found = decode_map(mask_message(support, jms_message("map", MAP)).body)
    assert found == {"card": COVER, "n": COVER, "who": {"card": COVER, "raw": COVER}, "none": None}
    assert decode_stream(mask_message(support, jms_message("stream", encode_stream([1, "x"]))).body) == [COVER, COVER]


def test_values_that_cannot_be_read_are_withheld_where_a_rule_applies(db):
    MaskingRule.objects.create(place="json", pattern="card", action="remove")
    shown = mask_message(make_user("operator"), jms_message("map", b"\x00\x00\x00\x05card"))
    assert shown.body == b""
    assert "its values cannot be read" in shown.withheld


def test_a_property_with_the_name_of_a_header_is_masked_and_told_by_its_own_name(db):
    MaskingRule.objects.create(place="header", pattern="amount", action="replace", replacement="?")
    MaskingRule.objects.create(place="header", pattern="type", action="replace", replacement="?")
    shown = mask_message(
        make_user("operator"), jms_message("text amount=i type=l", b"", amount="5", **{"sluice-property.type": "7"})
    )
    assert shown.masked == ("amount", "type")
    rows = {row.name: (row.type, row.value) for row in MessageView(shown).property_rows}
    assert rows == {"amount": ("int", "?"), "type": ("long", "?"), "region": ("string", "eu")}
