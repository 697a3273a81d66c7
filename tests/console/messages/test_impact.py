"""Test the impact of a resubmission, restricted to what the user may see. Pure."""

from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import BrowsedMessage
from console.messages.jobs.impact import assess_impact

HERE = Destination.queue("dlq")


def message(seq: int, **headers: str) -> BrowsedMessage:
    return BrowsedMessage(seq, f"ID:{seq}", HERE.stomp, None, headers, b"", 0)


def looked_at(messages, ways, **more):
    def router(asked):
        return [{"queues": [str(to)], "topics": []} for to, _ in asked]

    return assess_impact(messages, ways, len(messages), router, lambda _ids: {}, lambda _destination: None, **more)


def test_each_message_goes_its_way_and_what_does_not_say_where_goes_nowhere():
    a = Destination.queue("a")
    found = looked_at([message(1), message(2), message(3)], [(a, {}), (None, {}), (a, {})])
    assert [(each.target, each.count, each.error) for each in found.groups] == [
        (a, 2, ""), (None, 1, "its original destination is not recorded"),
    ]  # fmt: skip


def test_a_target_outside_of_the_scope_is_counted_and_not_named():
    secret = Destination.queue("secret")
    [group] = looked_at([message(1)], [(secret, {})], sees=lambda each: each != secret).groups
    assert (group.target, group.hidden_count, group.visible_queues) == (None, 1, [])
    assert "secret" not in group.sentence
    [seen] = looked_at([message(1)], [(secret, {})]).groups
    assert seen.target == secret


def test_what_is_masked_of_a_header_is_not_told_in_a_note():
    one = [message(1, JMSXGroupID="4711", resubmitCount="1", **{"sluice-wrote": "resubmitCount"})]
    told = looked_at(one, [(HERE, {})]).notes
    covered = looked_at(one, [(HERE, {})], shown=lambda each: {**each.headers, "JMSXGroupID": "covered"}).notes
    assert "(4711)" in told[0]
    assert "(covered)" in covered[0]
    assert told[1] == covered[1]


def test_a_time_to_live_that_only_the_sender_speaks_of_is_not_told_as_one_that_is_over():
    told = message(1, originalExpiration="1", **{"sluice-wrote": "originalExpiration"})
    claimed = message(2, originalExpiration="1")
    assert looked_at([told], [(HERE, {})]).notes == [
        "1 message exceeded the original time to live. After resubmission it would never expire."
    ]
    assert looked_at([claimed], [(HERE, {})]).notes == []
