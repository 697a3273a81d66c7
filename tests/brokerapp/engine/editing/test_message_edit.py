"""Test what an edit changes of a message, keeps, and refuses."""

import pytest

from brokerapp.engine.editing.message_edit import MAX_BODY, MessageEdit
from brokerapp.engine.editing.message_properties import check_properties
from brokerapp.engine.editing.resubmit_target import edit_target, origin_destination
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination

NOW = 1_000_000
HEADERS = {
    "message-id": "ID:1", "destination": "/queue/a", "timestamp": "5", "expires": "777", "priority": "7",
    "persistent": "true", "correlation-id": "c", "region": "eu", "originalAmount": "12", "dlqDeliveryFailureCause": "x",
    "sluice-wrote": "dlqDeliveryFailureCause", "resubmitCount": "2", "content-length": "3",
}  # fmt: skip


def applied(edit: MessageEdit, headers=HEADERS, body=b"\x00\xff\r\n"):
    return edit.applied(headers, body, "/queue/b", NOW)


def test_an_edit_that_changes_nothing_makes_a_copy_that_only_lacks_what_the_broker_wrote():
    copy = applied(MessageEdit())
    assert copy.properties == {"correlation-id": "c", "region": "eu", "originalAmount": "12"}
    assert (copy.body, copy.is_bytes) == (b"\x00\xff\r\n", True)
    assert (copy.destination, copy.persistent, copy.priority, copy.expires) == ("/queue/b", True, 7, 777)
    assert not MessageEdit().changes


def test_properties_and_headers_are_set_and_removed_and_the_rest_stays():
    copy = applied(MessageEdit({"region": "us", "type": "order", "n": ""}, ("correlation-id", "never-there")))
    assert copy.properties == {"region": "us", "originalAmount": "12", "type": "order", "n": ""}


@pytest.mark.parametrize(("lives", "expires"), [(None, 777), (0, 0), (60, NOW + 60_000)])
def test_a_time_to_live_begins_when_the_message_is_sent(lives, expires):
    assert applied(MessageEdit(lives=lives)).expires == expires


def test_persistence_priority_and_body_are_replaced():
    copy = applied(MessageEdit(persistent=False, priority=0, body=b"new"))
    assert (copy.persistent, copy.priority, copy.body, copy.is_bytes) == (False, 0, b"new", False)


def test_it_comes_back_from_json_as_it_was():
    edit = MessageEdit({"a": "1"}, ("b",), True, 3, 60, b"\xff\x00", True, True)
    assert MessageEdit.from_json(edit.to_json()) == edit
    assert MessageEdit.from_json(MessageEdit().to_json()) == MessageEdit()


def test_what_is_asked_is_told_without_the_body():
    told = dict(MessageEdit({"a": "1"}, ("b",), lives=0, body=b"secret", keeps=True).told())
    assert told == {
        "a": "1", "b": "removed", "lives": "never expires", "body": "replaced by 6 bytes", "originals": "stay",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (MessageEdit({"a": "1"}, ("a",)), "'a' cannot be set and removed"),
        (MessageEdit({"message-id": "x"}), "'message-id' is not a property"),
        (MessageEdit(remove=("expires",)), "'expires' is not a property"),
        (MessageEdit({"AMQ_SCHEDULED_DELAY": "5"}), "is not a property"),
        (MessageEdit({"resubmittedBy": "eve"}), "set by the broker"),
        (MessageEdit({"JMSXUserID": "eve"}), "reserved for the broker"),
        (MessageEdit({"": "x"}), "the name of a property is empty"),
        (MessageEdit({"a": "x\0"}), "NUL"),
        (MessageEdit(priority=10), "priority must be .* not 10"),
        (MessageEdit(lives=-1), "time to live must be .* not -1"),
        (MessageEdit({f"n{each}": "" for each in range(65)}), "65 properties"),
        (MessageEdit(body=bytes(MAX_BODY + 1)), "body: 1,048,577 bytes"),
    ],
)
def test_what_cannot_be_changed_so_is_refused_with_the_rule(edit, sentence):
    with pytest.raises(RequestRefused, match=sentence):
        edit.check()


def test_a_dead_letter_goes_to_where_it_failed_and_any_other_message_to_where_it_is():
    here = Destination.queue("here")
    assert str(edit_target(HEADERS, "/topic/failed", here)) == "topic://failed"
    assert edit_target({}, "/topic/sent", here) == here


def test_a_message_that_is_resubmitted_goes_to_where_it_came_from_unless_that_was_temporary():
    assert str(origin_destination("/queue/orders")) == "queue://orders"
    assert origin_destination("/remote-temp-queue/ID:1") is None
    assert origin_destination(None) is None


@pytest.mark.parametrize("name", ["JMSXUserID", "resubmittedBy", "sentBy", "dlqDeliveryFailureCause", "destination"])
def test_what_is_for_the_broker_to_say_nobody_gives(name):
    with pytest.raises(RequestRefused, match=name):
        check_properties({"region": "eu", name: "x"})


def test_a_delay_is_given_only_where_a_message_may_wait():
    check_properties({"AMQ_SCHEDULED_DELAY": "5", "correlation-id": "c"}, may_wait=True)
    with pytest.raises(RequestRefused, match="AMQ_SCHEDULED_DELAY"):
        check_properties({"AMQ_SCHEDULED_DELAY": "5"})


def test_so_many_are_edited_at_once_as_what_is_given_fits_into_one_commit():
    assert MessageEdit(priority=3).batch_size(200) == 200
    assert MessageEdit(body=bytes(MAX_BODY)).batch_size(200) == 8
    assert MessageEdit({f"n{each}": "x" * 10_000 for each in range(64)}).batch_size(200) == 13
