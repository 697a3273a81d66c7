"""Test the preview of an edit, and edits from forms and JSON."""

from dataclasses import replace

import pytest
from django.http import QueryDict

from brokerapp.engine.editing.message_edit import MessageEdit
from brokerapp.engine.policy.broker_headers import CAUSE, SIGNATURE
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.model.jms.form import JMS_HEADER, JmsForm
from brokerapp.model.stats_records import BrowsedMessage
from console.messages.jobs import job_service
from console.messages.jobs.edit_input import EditForm, to_stomp_values
from console.messages.jobs.preview import planned_send, preview_edit
from console.messages.jobs.spec import JobSpec

HEADERS = {"message-id": "ID:1", "priority": "4", "expires": "0", "persistent": "true", "region": "eu", "n": "1"}
MESSAGE = BrowsedMessage(7, "ID:1", "/queue/a", None, HEADERS, b"old", 3)


def wish(edit: MessageEdit, target: Destination | None = None) -> JobSpec:
    return JobSpec("edit", Destination.queue("a"), target, edit=edit, reason="r")


def told(edit: MessageEdit, target: Destination | None = None) -> dict[str, tuple]:
    found = preview_edit(MESSAGE, wish(edit, target), now_ms=0)
    rows = [*found.rows, *([found.body] if found.body else [])]
    return {row.name: (row.kind, row.before, row.after) for row in rows if row.kind != "same"}


def test_the_first_message_is_shown_before_and_after():
    edit = MessageEdit({"region": "us", "type": "t"}, ("n",), False, 9, 60, b"new")
    assert told(edit, Destination.topic("b")) == {
        "destination": ("changed", "/queue/a", "/topic/b"),
        "persistent": ("changed", "yes", "no"),
        "priority": ("changed", "4", "9"),
        "expires": ("changed", "never", "1970-01-01 00:01:00 UTC"),
        "type": ("added", None, "t"),
        "n": ("removed", "1", None),
        "region": ("changed", "eu", "us"),
        "body": ("changed", "old", "new"),
    }


def test_what_stays_is_shown_as_such_and_what_is_masked_not_at_all():
    found = preview_edit(MESSAGE, wish(MessageEdit({"x": "1"})))
    assert [row.name for row in found.rows if row.kind == "same"] == ["destination", "persistent", "n", "region"]
    assert found.body is None
    hidden = preview_edit(MESSAGE, wish(MessageEdit({"x": "1"})), is_hidden=True)
    assert (hidden.is_hidden, hidden.rows, hidden.body) == (True, (), None)


@pytest.mark.parametrize("action", ["retry", "edit"])
def test_its_way_is_the_one_that_the_node_takes_whatever_it_came_by(action):
    headers = {**HEADERS, CAUSE: "boom", SIGNATURE: CAUSE, "original-destination": "/topic/by"}
    dead = replace(MESSAGE, headers=headers, original_destination="/topic/by", came_from="/queue/failed")
    asked = JobSpec(
        action, Destination.queue("a"), edit=MessageEdit({"n": "2"}) if action == "edit" else None, reason="r"
    )
    to, sent = planned_send(dead, asked)
    assert to == job_service.target_of(action, dead, asked.queue) == Destination.queue("failed")
    assert "dlqDeliveryFailureCause" not in sent


def form(**fields: str | list[str]) -> QueryDict:
    given = QueryDict(mutable=True)
    for name, value in fields.items():
        given.setlist(name.replace("_", "-"), value if isinstance(value, list) else [value])
    return given


def test_a_form_says_what_is_set_and_what_is_removed():
    given = form(
        property_name=["n", "reply-to", ""], property_type=["number", "remove", "text"], property_value=["5", "", ""],
        persistent="false", priority="2", lives="0", encoding="base64", body="AAE=", keeps="true",
    )  # fmt: skip
    assert EditForm.read(given).to_edit() == MessageEdit(
        {"n": "5"}, ("reply-to",), False, 2, 0, b"\x00\x01", True, True
    )
    assert EditForm.read(form(body="ignored", encoding="keep")).to_edit() == MessageEdit()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"property_name": "n", "property_type": "number", "property_value": "five"}, "'five' is not a number"),
        ({"property_name": "n", "property_type": "boolean", "property_value": "yes"}, "'yes' is not a boolean"),
        ({"property_name": ["n", "n"], "property_type": ["text"] * 2, "property_value": ["1", "2"]}, "given twice"),
        ({"priority": "high"}, "priority: 'high'"),
        ({"lives": "-1"}, "lives: '-1'"),
        ({"encoding": "base64", "body": "?"}, "invalid base64"),
        ({"persistent": "perhaps"}, "must be true or false"),
    ],
)
def test_a_form_that_makes_no_sense_is_refused_by_field_and_rule(fields, sentence):
    with pytest.raises(RequestRefused, match=sentence):
        EditForm.read(form(**fields)).to_edit()


def test_values_of_json_are_written_as_stomp_has_them():
    assert to_stomp_values({"a": True, "b": 5, "c": 1.5, "d": "x"}) == {"a": "true", "b": "5", "c": "1.5", "d": "x"}


JMS_HEADERS = {**HEADERS, "sluice-property.type": "7", "amount": "5", JMS_HEADER: "text type=l amount=i"}
JMS_MESSAGE = replace(MESSAGE, headers=JMS_HEADERS)


def test_the_preview_of_a_jms_message_names_types_and_never_the_lines_of_the_broker():
    edit = MessageEdit({"amount": "6", "region": "9"}, types={"amount": "long", "region": "string"})
    rows = {row.name: (row.before, row.after) for row in preview_edit(JMS_MESSAGE, wish(edit)).rows}
    assert rows["amount"] == ("5 (int)", "6 (long)")
    assert (rows["type"], rows["region"]) == (("7 (long)", "7 (long)"), ("eu", "9"))
    assert not [name for name in rows if name.startswith("sluice")]


@pytest.mark.parametrize(
    ("edit", "types"),
    [
        (MessageEdit({"amount": "6"}), {"type": "l", "amount": "i"}),
        (MessageEdit({"amount": "six"}), {"type": "l"}),
        (MessageEdit({"amount": "6"}, types={"amount": "string"}), {"type": "l"}),
        (MessageEdit({"amount": "6", "n": "1.5"}, types={"n": "double"}), {"type": "l", "amount": "i", "n": "d"}),
        (MessageEdit(remove=("amount",)), {"type": "l"}),
    ],
)
def test_an_edit_keeps_types_or_gives_those_that_are_asked_for(edit, types):
    made = edit.applied(JMS_HEADERS, b"old", "/queue/a", 0)
    assert dict(JmsForm.parse(made.jms_form).types) == types
    assert edit.applied(HEADERS, b"old", "/queue/a", 0).jms_form == "", "a STOMP client's message stays one"


def test_types_of_a_form_are_those_of_the_edit_and_wrong_ones_are_refused():
    given = form(property_name=["n", "m"], property_type=["int", "keep type"], property_value=["+5", "x"])
    assert EditForm.read(given).to_edit() == MessageEdit({"n": "5", "m": "x"}, types={"n": "int"})
    for edit, sentence in (
        (MessageEdit({"n": "x"}, types={"n": "int"}), "'x' is not an int"),
        (MessageEdit(types={"n": "int"}), "'n' is not one of the properties"),
        (MessageEdit({"type": "5"}, types={"type": "int"}), "'type' is a header"),
    ):
        with pytest.raises(RequestRefused, match=sentence):
            edit.check()
