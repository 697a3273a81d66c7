"""Test which headers of a message count as written by the broker."""

import pytest

from brokerapp.admin.browsing import arrived_ms, to_browsed
from brokerapp.engine.editing.resubmit_target import edit_target
from brokerapp.engine.policy.broker_headers import (
    CAUSE,
    CLAIMED_ROUTE,
    EARLIER_CAUSE,
    FAILED_AT,
    FIRST_FAILED_AT,
    NAMES,
    ORIGIN,
    RESUBMIT_COUNT,
    ROUTE,
    SIGNATURE,
    broker_headers,
    failure_history,
    with_broker_headers,
)  # fmt: skip
from brokerapp.engine.policy.dead_letters import DeadLetterInfo, dead_letter, route_headers
from brokerapp.model.definitions import DeadLetterStrategy
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message, unescape
from brokerapp.stomp.send_headers import origin_of, properties_of
from brokerapp.store import StoredLogEntry


def test_what_a_client_says_is_delivered_and_is_not_the_brokers_word():
    forged = dict.fromkeys(NAMES, "x") | {SIGNATURE: CAUSE}
    sent = properties_of(forged)
    assert all(f"{name}:x\n" in sent for name in NAMES)
    assert SIGNATURE not in sent
    assert broker_headers(dict.fromkeys(NAMES, "x")) == {}


def test_what_the_broker_writes_is_its_word_until_it_takes_it_away():
    headers = {CAUSE: "by a client", RESUBMIT_COUNT: "7"}
    dead = {**headers, **with_broker_headers(headers, {CAUSE: "rejected", ROUTE: "/queue/a"})}
    assert broker_headers(dead) == {CAUSE: "rejected", ROUTE: "/queue/a"}
    again = with_broker_headers(dead, {CAUSE: None, RESUBMIT_COUNT: "1"})
    merged = {name: value for name, value in {**dead, **again}.items() if value is not None}
    assert broker_headers(merged) == {RESUBMIT_COUNT: "1", ROUTE: "/queue/a"}
    assert with_broker_headers({}, {"original-destination": "/queue/a"})[SIGNATURE] is None


def test_a_death_believes_nothing_that_the_message_came_with():
    head = b"message-id:1\nresubmitCount:9\nresubmittedBy:boss\ndlqRoute:/queue/elsewhere\ndlqConsumer:somebody\n"
    death = DeadLetterInfo("rejected", Destination.queue("orders"), "", 5, 1, "")
    dead = dead_letter(Message("1", head, b"", persistent=True), death, DeadLetterStrategy())
    word = broker_headers(dead.headers)
    assert word == {CAUSE: "rejected", "dlqDeliveryCount": "1", "dlqTime": "5", ROUTE: "/queue/orders"}
    assert dead.headers["resubmittedBy"] == "boss"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ({}, (None, None)),
        ({CAUSE: "boom", FAILED_AT: "5"}, ("boom", "5")),
        ({CAUSE: "boom", FAILED_AT: "5", EARLIER_CAUSE: "boom", FIRST_FAILED_AT: "2"}, ("boom", "2")),
        ({CAUSE: "boom", FAILED_AT: "5", EARLIER_CAUSE: "expired", FIRST_FAILED_AT: "2"}, ("boom", "5")),
    ],
    ids=["never failed", "failed once", "failed alike before", "failed otherwise before"],
)
def test_a_resubmitted_message_says_what_it_failed_of_and_since_when(said, kept):
    history = failure_history({**said, SIGNATURE: ",".join(said)})
    assert (history[EARLIER_CAUSE], history[FIRST_FAILED_AT]) == kept


def test_the_history_of_failures_that_a_client_claims_is_not_carried_on():
    claimed = {CAUSE: "boom", FAILED_AT: "5", EARLIER_CAUSE: "boom", FIRST_FAILED_AT: "2"}
    assert set(failure_history(claimed).values()) == {None}


def test_places_that_a_message_came_with_are_kept_as_a_claim_however_often_the_broker_writes_its_way():
    queue, way = Destination.queue, {}
    came = Message("1", b"message-id:1\ndlqRoute:/queue/a,/queue/b,/queue/a\ndlqClaimedRoute:/queue/c\n", b"")
    for each in ("parked", "dead", "moved"):
        way = with_broker_headers(came.headers, route_headers(came, "", queue(each)))
        came = came.with_headers(way)
    assert broker_headers(came.headers) == {ROUTE: "/queue/parked,/queue/dead,/queue/moved"}
    assert came.headers[CLAIMED_ROUTE] == "/queue/c,/queue/a,/queue/b"
    assert CLAIMED_ROUTE not in route_headers(Message("2", b"message-id:2\n", b""), "/topic/t", queue("x"))


#: What a dead letter said before the broker signed: a client may say the same.
OLD = {CAUSE: "rejected", FAILED_AT: "5", ROUTE: "/queue/home", RESUBMIT_COUNT: "3"}


def test_what_the_broker_stored_before_it_signed_is_its_word():
    old = {**OLD, ORIGIN: "/queue/home"}
    assert broker_headers(old) == OLD
    assert edit_target(old, "/queue/home", Destination.queue("dead")) == Destination.queue("home")
    assert arrived_ms(stored(old).message) == 5
    assert route_headers(stored(old).message, "", Destination.queue("dead")) == {ROUTE: "/queue/home,/queue/dead"}


def test_a_place_that_the_broker_writes_beside_what_a_client_says_makes_none_of_that_its_word():
    beside = with_broker_headers(OLD, {ORIGIN: "/queue/named"})
    assert beside == {ORIGIN: "/queue/named", SIGNATURE: ""}
    assert broker_headers({**OLD, **beside}) == {}
    assert with_broker_headers({"region": "eu"}, {ORIGIN: "/queue/named"})[SIGNATURE] is None, (
        "ordinary messages say nothing more"
    )


@pytest.mark.parametrize(
    ("said", "word"), [({}, {}), ({ORIGIN: "/queue/home"}, OLD), ({SIGNATURE: CAUSE}, {CAUSE: "rejected"})]
)
def test_the_virtual_destination_by_which_a_copy_came_proves_nothing_of_what_it_says(said, word):
    shown = to_browsed(stored({**OLD, **said}, "/topic/by"), Destination.queue("copy"))
    assert shown.headers[ORIGIN] == "/topic/by"
    assert broker_headers(shown.headers) == word


def test_the_place_that_a_bridge_names_makes_nothing_that_crossed_this_brokers_word():
    lines = properties_of({**OLD, ORIGIN: "/queue/there"}) + origin_of({**OLD, ORIGIN: "/queue/there"})
    headers = {name: unescape(value) for name, _, value in (line.partition(":") for line in lines.splitlines())}
    assert headers[ORIGIN] == "/queue/there"
    assert broker_headers(headers) == {}
    assert origin_of({ORIGIN: "/queue/there", "region": "eu"}) == "original-destination:/queue/there\n"


def stored(headers: dict[str, str], by: str = "") -> StoredLogEntry:
    """A message as a store has it, `by` the virtual destination by which it came."""
    head = "".join(f"{name}:{value}\n" for name, value in {"message-id": "1", **headers}.items())
    return StoredLogEntry(1, Message("1", head.encode(), b""), 0, 0, by, "")


def test_where_another_broker_had_a_message_is_kept_when_a_copy_comes_by_way_of_a_topic_here():
    bridged = Message("1", b"message-id:1\noriginal-destination:/queue/there\nsluice-wrote:\n", b"")
    way = route_headers(bridged, "/topic/by", Destination.queue("here"))
    assert way == {ROUTE: "/topic/by,/queue/here", CLAIMED_ROUTE: "/queue/there"}


def test_an_edited_message_goes_home_only_from_where_the_broker_says_that_it_failed():
    here, headers = Destination.queue("here"), {CAUSE: "x"}
    assert edit_target(headers, "/queue/home", here) == here
    assert edit_target({**headers, **with_broker_headers({}, headers)}, "/queue/home", here) == Destination.queue(
        "home"
    )
