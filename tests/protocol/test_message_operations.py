"""Test operations on single messages: by number, editing, sending; and positions in a queue."""

import time

import pytest

from brokerapp.admin import BrokerAdmin
from brokerapp.core.commits.batch_limits import MAX_BYTES
from brokerapp.engine.editing.message_edit import MAX_BODY, MessageEdit
from brokerapp.engine.editing.operator_message import OperatorMessage
from brokerapp.engine.editing.resubmit_target import edit_target, origin_destination
from brokerapp.errors import DestinationNotFound, RequestRefused
from brokerapp.model.definitions import CompositeDestination, ForwardTarget
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import END_OF_LOG
from tests.waiting import wait_until

queue = Destination.queue


def numbers(node, name) -> list[int]:
    return [message.seq for message in node.browse(name)]


def step(node, action, name, seqs, **more):
    found = node.ask(lambda admin: admin.step(action, queue(name), seqs, **more))
    return {each.seq: (each.outcome, each.detail) for each in found}


def fill(connect, name, count, **headers):
    client = connect()
    for number in range(count):
        client.send(f"/queue/{name}", str(number), persistent="true", **headers)
    return client


def test_a_step_deals_with_the_messages_it_names_and_tells_of_each_where_it_came(connect, node, name):
    fill(connect, name, 5)
    first, second, *_, last = numbers(node, name)
    done = step(node, "move", name, [last, second], target=queue(f"{name}.to"))
    assert done == {last: ("done", f"queue://{name}.to"), second: ("done", f"queue://{name}.to")}
    assert node.bodies(name) == ["0", "2", "3"]
    assert node.bodies(f"{name}.to") == ["1", "4"]
    assert step(node, "remove", name, [first, second]) == {first: ("done", ""), second: ("gone", "")}
    assert node.bodies(name) == ["2", "3"]
    assert node.depth(name) == 2


def test_a_step_that_is_repeated_does_nothing_twice(connect, node, name):
    fill(connect, name, 3)
    seqs = numbers(node, name)
    assert {outcome for outcome, _ in step(node, "move", name, seqs, target=queue(f"{name}.to")).values()} == {"done"}
    assert {outcome for outcome, _ in step(node, "move", name, seqs, target=queue(f"{name}.to")).values()} == {"gone"}
    assert node.bodies(f"{name}.to") == ["0", "1", "2"]


def test_what_a_consumer_holds_stays_with_it(connect, node, name):
    client = fill(connect, name, 2)
    client.subscribe(f"/queue/{name}", ack="client-individual", prefetch=1)
    [held] = client.take(1)
    a, b = numbers(node, name)
    outcomes = step(node, "remove", name, [a, b])
    assert outcomes[a][0] == "held"
    assert outcomes[b] == ("done", "")
    client.ack(held)
    assert node.depth(name) == 0


def test_numbers_far_apart_are_found(connect, node, name):
    client = connect()
    for number in range(30):
        client.send(f"/queue/{name}", str(number))
        client.send(f"/queue/{name}.other", "between")
    seqs = numbers(node, name)
    wanted = [seqs[0], seqs[7], seqs[29]]
    assert {outcome for outcome, _ in step(node, "copy", name, wanted, target=queue(f"{name}.to")).values()} == {"done"}
    assert node.bodies(f"{name}.to") == ["0", "7", "29"]
    assert len(node.bodies(name)) == 30


def test_a_retry_goes_to_where_it_failed_with_who_when_and_how_often_and_without_the_failure(connect, node, name):
    client = fill(connect, name, 1, order="4711")
    client.subscribe(f"/queue/{name}", ack="client-individual")
    failed_first = None
    for times in (1, 2):
        client.nack(client.take(1)[0])
        node_dlq = [each for each in node.browse("ActiveMQ.DLQ") if each.original_destination == f"/queue/{name}"]
        [dead] = node_dlq
        cause = dead.headers["dlqDeliveryFailureCause"]
        failed_first = failed_first or dead.headers["dlqTime"]
        outcome = step(node, "retry", "ActiveMQ.DLQ", [dead.seq], actor="ada")
        assert outcome == {dead.seq: ("done", f"queue://{name}")}
        [again] = node.browse(name)
        assert again.headers["resubmitCount"] == str(times)
        assert again.headers["resubmittedBy"] == "ada"
        assert abs(int(again.headers["resubmittedTime"]) / 1000 - time.time()) < 60
        assert not {"dlqDeliveryFailureCause", "dlqDeliveryCount", "dlqTime"} & again.headers.keys()
        assert (again.headers["resubmittedCause"], again.headers["dlqFirstTime"]) == (cause, failed_first)
        assert again.headers["order"] == "4711"


def test_a_message_that_does_not_say_where_it_failed_is_refused_and_stays(connect, node, name):
    fill(connect, name, 1)
    [seq] = numbers(node, name)
    [(outcome, why)] = step(node, "retry", name, [seq]).values()
    assert (outcome, why) == ("refused", "its original destination is unknown: choose a target")
    assert node.bodies(name) == ["0"]


def test_an_edited_message_takes_the_place_of_the_old_one_under_an_id_of_its_own(connect, node, name):
    fill(connect, name, 1, region="eu")
    [old] = node.browse(name)
    new = OperatorMessage(f"/queue/{name}.fixed", {"region": "us"}, b"mended").to_json()
    answer = node.ask(lambda admin: admin.edit(queue(name), old.seq, new, "ada"))
    [mended] = node.browse(f"{name}.fixed")
    assert (mended.id, answer["places"]) == (answer["id"], [f"queue://{name}.fixed"])
    assert mended.body == b"mended"
    assert mended.headers["resubmittedFrom"] == old.id
    assert (mended.headers["region"], mended.headers["resubmittedBy"]) == ("us", "ada")
    assert node.bodies(name) == []
    with pytest.raises(RequestRefused, match="no longer in"):
        node.ask(lambda admin: admin.edit(queue(name), old.seq, new, "ada"))
    assert len(node.bodies(f"{name}.fixed")) == 1


def test_messages_are_edited_in_a_step_and_a_repeated_step_does_nothing_twice(connect, node, name):
    client = fill(connect, name, 3, region="eu", priority="7")
    client.subscribe(f"/queue/{name}", ack="client-individual", prefetch=1)
    [held] = client.take(1)
    old = node.browse(name)
    edit = MessageEdit({"region": "us"}, body=b"mended").to_json()

    def again():
        return node.ask(lambda admin: admin.step("edit", queue(name), [each.seq for each in old], None, "ada", edit))

    outcomes = again()
    assert [each.outcome for each in outcomes] == ["held", "done", "done"]
    assert [each.id for each in outcomes[1:]] == [each.id for each in old[1:]]
    assert [each.outcome for each in again()] == ["held", "gone", "gone"]
    client.ack(held)
    new = node.browse(name)
    assert [each.id for each in new] == [each.new_id for each in outcomes[1:]]
    assert [each.headers["resubmittedFrom"] for each in new] == [each.id for each in old[1:]]
    for each in new:
        assert (each.body, each.headers["region"], each.headers["priority"]) == (b"mended", "us", "7")
        assert (each.headers["persistent"], each.headers["resubmittedBy"]) == ("true", "ada")


def test_a_dead_letter_is_edited_back_to_where_it_failed_and_may_stay_too(connect, node, name):
    client = fill(connect, name, 1, order="4711")
    client.subscribe(f"/queue/{name}", ack="client-individual")
    client.nack(client.take(1)[0])
    client.leave()
    [dead] = [each for each in node.browse("ActiveMQ.DLQ") if each.original_destination == f"/queue/{name}"]

    def edited(**more):
        edit = MessageEdit({"order": "4712"}, **more).to_json()
        [found] = node.ask(lambda admin: admin.step("edit", queue("ActiveMQ.DLQ"), [dead.seq], None, "ada", edit))
        return found.outcome, found.detail

    assert edited(keeps=True) == ("done", f"queue://{name}")
    assert edited() == ("done", f"queue://{name}")
    assert edited() == ("gone", "")
    assert [(each.headers["order"], each.body) for each in node.browse(name)] == [("4712", b"0")] * 2
    assert not {"dlqDeliveryFailureCause", "dlqRoute"} & node.browse(name)[0].headers.keys()


def dead_letter_by_a_composite(connect, node, name):
    """A dead letter that an operator moved, by way of a composite: what is shown as its origin is the composite."""
    node.define(CompositeDestination(queue(f"{name}.in"), (ForwardTarget(queue(f"{name}.parked")),)))
    client = fill(connect, name, 1)
    client.subscribe(f"/queue/{name}", ack="client-individual")
    client.nack(client.take(1)[0])
    client.leave()
    [dead] = [each for each in node.browse("ActiveMQ.DLQ") if each.original_destination == f"/queue/{name}"]
    assert step(node, "move", "ActiveMQ.DLQ", [dead.seq], target=queue(f"{name}.in"))[dead.seq][0] == "done"
    [parked] = node.browse(f"{name}.parked")
    assert parked.original_destination == f"/queue/{name}.in"
    return parked


@pytest.mark.parametrize(("action", "edit"), [("retry", None), ("edit", MessageEdit({"n": "1"}).to_json())])
def test_a_browsed_message_says_where_it_goes_by_itself_whatever_it_came_by(connect, node, name, action, edit):
    parked = dead_letter_by_a_composite(connect, node, name)
    goes = edit_target(parked.headers, parked.came_from, queue(name)) if edit else origin_destination(parked.came_from)
    outcome, detail = step(node, action, f"{name}.parked", [parked.seq], edit=edit)[parked.seq]
    assert (outcome, detail) == ("done", str(goes))


def test_a_large_body_is_given_to_so_many_at_once_as_one_commit_bears(connect, node, name, monkeypatch):
    fill(connect, name, 20)
    sizes, submit = [], node.node.broker.commits.submit

    def weighed(unit, *given):
        sizes.append(unit.cost[1])
        submit(unit, *given)

    monkeypatch.setattr(node.node.broker.commits, "submit", weighed)
    edit = MessageEdit(body=bytes(MAX_BODY)).to_json()
    outcomes = step(node, "edit", name, numbers(node, name), edit=edit)
    assert {outcome for outcome, _ in outcomes.values()} == {"done"}
    assert max(sizes) < MAX_BYTES + 20_000


def test_what_an_edit_makes_larger_than_the_store_has_room_for_stays_as_it_is(connect, node, name, monkeypatch):
    fill(connect, name, 2)
    committer = node.node.broker.commits
    monkeypatch.setattr(committer.limits, "total", committer.used + 50_000)
    larger, smaller = MessageEdit(body=bytes(100_000)).to_json(), MessageEdit(body=b"mended").to_json()
    assert set(step(node, "edit", name, numbers(node, name), edit=larger).values()) == {
        ("refused", "the broker's store is full")
    }
    assert node.bodies(name) == ["0", "1"]
    step(node, "edit", name, numbers(node, name), edit=smaller)
    assert node.bodies(name) == ["mended", "mended"]


def test_what_an_edit_makes_larger_than_its_queue_may_hold_stays_as_it_is_and_is_told_why(
    connect, node, name, monkeypatch
):
    fill(connect, name, 2)
    monkeypatch.setattr(node.node.broker.limits, "of_log", lambda log: 5_000 if log == f"queue://{name}" else 0)
    larger, smaller = MessageEdit(body=bytes(6_000)).to_json(), MessageEdit(body=bytes(1_500)).to_json()
    for outcome, why in step(node, "edit", name, numbers(node, name), edit=larger).values():
        assert outcome == "refused"
        assert f"the edited message does not fit: queue://{name} is full" in why
    [first, _] = numbers(node, name)
    message = OperatorMessage(f"/queue/{name}", {}, bytes(6_000)).to_json()
    refusal = f"message {first} stays in queue://{name}: the edited message does not fit"
    with pytest.raises(RequestRefused, match=refusal):
        node.ask(lambda admin: admin.edit(queue(name), first, message, "ada"))
    assert node.bodies(name) == ["0", "1"]
    step(node, "edit", name, numbers(node, name), edit=smaller)
    assert {len(each) for each in node.bodies(name)} == {1_500}
    step(node, "remove", name, numbers(node, name)[1:])
    assert {outcome for outcome, _ in step(node, "edit", name, numbers(node, name), edit=larger).values()} == {"done"}


def test_what_is_not_taken_leaves_no_trace_where_it_would_have_gone(connect, node, name):
    client = fill(connect, name, 1)
    client.subscribe(f"/queue/{name}", ack="client-individual")
    client.take(1)
    [held] = numbers(node, name)
    message = OperatorMessage(f"/queue/{name}.new", {}, b"x").to_json()
    with pytest.raises(RequestRefused, match="a consumer holds it"):
        node.ask(lambda admin: admin.edit(queue(name), held, message, "ada"))
    assert step(node, "move", name, [held], target=queue(f"{name}.new"))[held][0] == "held"
    with pytest.raises(DestinationNotFound):
        node.browse(f"{name}.new")


def test_who_edits_or_sends_a_message_cannot_say_what_is_for_the_broker_to_say(connect, node, name):
    client = fill(connect, name, 1)
    [old] = node.browse(name)
    forged = OperatorMessage(f"/queue/{name}", {"JMSXUserID": "eve"}, b"x").to_json()
    with pytest.raises(RequestRefused, match="'JMSXUserID' is reserved for the broker"):
        node.ask(lambda admin: admin.edit(queue(name), old.seq, forged, "ada"))
    with pytest.raises(RequestRefused, match="'JMSXUserID' is reserved for the broker"):
        node.ask(lambda admin: admin.send(forged))
    dead = OperatorMessage(f"/queue/{name}", {"dlqDeliveryFailureCause": "boom"}, b"x").to_json()
    with pytest.raises(RequestRefused, match="set by the broker"):
        node.ask(lambda admin: admin.send(dead))
    assert node.bodies(name) == ["0"]
    client.leave()


def test_an_edit_that_cannot_be_leaves_the_messages_alone(connect, node, name):
    fill(connect, name, 1)
    seqs = numbers(node, name)
    wrong = MessageEdit({"message-id": "x"}).to_json()
    with pytest.raises(RequestRefused, match="is not a property"):
        node.ask(lambda admin: admin.step("edit", queue(name), seqs, None, "ada", wrong))
    with pytest.raises(RequestRefused, match="edit requires changes"):
        step(node, "edit", name, seqs)
    edit = MessageEdit({"a": "1"}).to_json()
    topic = Destination.topic(f"{name}.nobody.>")
    with pytest.raises(RequestRefused, match="makes a pattern"):
        node.ask(lambda admin: admin.step("edit", queue(name), seqs, topic, "ada", edit))
    assert node.bodies(name) == ["0"]


def test_a_test_message_goes_the_way_of_any_and_says_which(connect, node, name):
    node.define(
        CompositeDestination(
            queue(f"{name}.in"), (ForwardTarget(queue(f"{name}.a")), ForwardTarget(queue(f"{name}.b"), "n > 5"))
        )
    )
    message = OperatorMessage(f"/queue/{name}.in", {"n": "7"}, b"x", priority=8).to_json()
    answer = node.ask(lambda admin: admin.send(message, 3, "ada"))
    assert answer["count"] == 3
    assert answer["queues"] == [f"queue://{name}.a", f"queue://{name}.b"]
    sent = node.browse(f"{name}.b")
    assert [each.headers["priority"] for each in sent] == ["8", "8", "8"]
    assert sent[0].id == answer["id"]
    assert sent[0].headers["sentBy"] == "ada"
    assert node.numbers(queue(f"{name}.in")).ProducerCount == 0


def test_a_test_message_may_wait_and_a_wrong_one_is_refused(node, name):
    delayed = OperatorMessage(f"/queue/{name}", {"AMQ_SCHEDULED_DELAY": "3600000"}, b"later").to_json()
    id = node.ask(lambda admin: admin.send(delayed))["id"]
    _, waiting = node.ask(lambda admin: admin.scheduled())
    assert id in [each.job for each in waiting]
    node.ask(lambda admin: admin.cancel_scheduled(id))
    wrong = OperatorMessage(f"/queue/{name}", {"AMQ_SCHEDULED_CRON": "every now and then"}, b"").to_json()
    with pytest.raises(RequestRefused, match="five fields"):
        node.ask(lambda admin: admin.send(wrong))


def test_a_place_in_a_queue_is_found_by_time_and_from_the_end(connect, node, name):
    client = connect()
    for number in range(10):
        client.send(f"/queue/{name}", str(number))
        if number == 5:
            time.sleep(0.01)
            middle = time.time_ns() // 1_000_000
            time.sleep(0.01)

    async def look(admin: BrokerAdmin):
        after = await admin.seq_at(queue(name), middle)
        newest = await admin.browse_back(queue(name), limit=3)
        before = await admin.browse_back(queue(name), before=newest.next, limit=3)
        pages = [await admin.browse(queue(name), after, limit=3), newest, before]
        beyond = await admin.seq_at(queue(name), middle + 3_600_000)
        return [[each.body for each in page.messages] for page in pages], beyond, await admin.last(queue(name))

    pages, beyond, last = node.ask(look)
    assert pages == [[b"6", b"7", b"8"], [b"7", b"8", b"9"], [b"4", b"5", b"6"]]
    assert beyond == last == numbers(node, name)[-1]


def test_the_last_that_match_are_found_from_the_end_in_bounded_looks(connect, node, name):
    client = connect()
    for number in range(30):
        client.send(f"/queue/{name}", str(number), kind="rare" if number in (2, 21, 28) else "dull")
    wait_until(lambda: node.depth(name) == 30, "all are there")

    async def look(admin: BrokerAdmin, *where):
        page = await admin.browse_back(queue(name), *where)
        return [int(each.body) for each in page.messages], page.scanned, page.next

    rare, first = "kind = 'rare'", numbers(node, name)[0]
    assert node.ask(lambda admin: look(admin, END_OF_LOG, 50, rare)) == ([2, 21, 28], 30, None)
    assert node.ask(lambda admin: look(admin, END_OF_LOG, 1, rare)) == ([28], 2, first + 28)
    assert node.ask(lambda admin: look(admin, first + 28, 50, rare, 20)) == ([21], 20, first + 8)
    assert node.ask(lambda admin: look(admin, first + 8, 50, rare, 20)) == ([2], 8, None)
    some = node.ask(lambda admin: admin.count_back(queue(name), END_OF_LOG, rare, 20))
    assert (str(some), some.looked_at, some.of) == ("at least 2", 20, 30)
    assert str(node.ask(lambda admin: admin.count_back(queue(name), END_OF_LOG, rare, 30))) == "3"
