"""Test when alert rules fire, what follows, and the test on history. No I/O."""

import pytest
from django.urls import resolve, reverse

from brokerapp.cluster.status import ClusterStatus, MemberState, MemberStatus
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import DestinationStats, NodeStatus
from brokerapp.model.subscription_identity import SubscriptionIdentity
from brokerapp.model.time_series import BrokerPoint, DestinationPoint
from console.alerts.backtest import replay
from console.alerts.delivery.subject_pages import PAGES
from console.alerts.evaluation import was_monitored
from console.alerts.metrics import DESCRIPTIONS, LATELY_SECONDS, AlertMetric
from console.alerts.readings import BROKER, MetricReadings
from console.alerts.rules import (
    MAX_OPEN,
    AlertCondition,
    AlertTransitions,
    OpenSubject,
    RuleEvaluation,
    evaluate_rule,
    sentence,
    transitions,
)
from console.broker.snapshot import BrokerSnapshot, apply_changes, apply_tick, initial_snapshot
from console.metrics.sampling.sampler import STILL


def cluster(name: str, state: MemberState) -> dict:
    """A cluster with this other broker in it, as a node tells of it."""
    member = MemberStatus(name, "tcp://r:1", state, is_master=False)
    return ClusterStatus("b", "b", False, True, "", "", 0, 0, (member,)).to_json()


NOW = 1_700_000_000
A, B, DLQ = Destination.queue("orders.a"), Destination.queue("orders.b"), Destination.queue("ActiveMQ.DLQ")


def picture(*rows: DestinationStats, store=None, connections=0) -> BrokerSnapshot:
    node = NodeStatus("n", "b", 0, 0, connected={"all": connections}, store=store or {})
    return apply_tick(initial_snapshot(NOW, 1, rows, BrokerSnapshot()), NOW, [node])


def stats(destination=A, **more) -> DestinationStats:
    return DestinationStats(destination, **more)


def broken(rule: AlertCondition, readings: MetricReadings) -> dict[str, float]:
    return evaluate_rule(rule, readings).breaking


LOG, NOT_DURABLE = Destination(DestinationKind.SUBSCRIPTION, "c:s"), Destination(DestinationKind.SUBSCRIPTION, "c:t")
NAMED = {
    LOG: SubscriptionIdentity("c", "s", (Destination.topic("prices.>"),)),
    NOT_DURABLE: SubscriptionIdentity("c", "t", (Destination.topic("prices.>"),), durable=False, shared=True),
}
RECENT = {
    A: [DestinationPoint(NOW - 900, 0, 0, 0, 0, 9, 9, 9, 9), DestinationPoint(NOW - 60, 0, 0, 0, 0, 1, 2, 3, 4)],
    DLQ: [DestinationPoint(NOW - 900, 5, 5, 0, 0), DestinationPoint(NOW - 60, 9, 4, 0, 0)],
}
CASES = [
    ("a depth above", AlertCondition(AlertMetric.DEPTH, 10), [stats(QueueSize=11)], {str(A): 11}),
    ("a depth that is just reached", AlertCondition(AlertMetric.DEPTH, 10), [stats(QueueSize=10)], {}),
    ("a depth below", AlertCondition(AlertMetric.DEPTH, 5, below=True),
     [stats(QueueSize=4), stats(B, QueueSize=5)], {str(A): 4}),
    ("a pattern leaves others out", AlertCondition(AlertMetric.DEPTH, 1, "orders.b"),
     [stats(QueueSize=9), stats(B, QueueSize=9)],
     {str(B): 9}),
    ("a pattern of topics", AlertCondition(AlertMetric.DEPTH, 1, "topic://>"), [stats(QueueSize=9)], {}),
    ("nobody consumes", AlertCondition(AlertMetric.NO_CONSUMER, 0),
     [stats(QueueSize=3), stats(B, QueueSize=3, ConsumerCount=1)],
     {str(A): 3}),
    ("an empty queue needs nobody", AlertCondition(AlertMetric.NO_CONSUMER, 0), [stats()], {}),
    ("an old message", AlertCondition(AlertMetric.OLDEST, 60),
     [stats(QueueSize=1), stats(B, QueueSize=1)], {str(A): 100}),
    ("fewer consumers than there should be", AlertCondition(AlertMetric.CONSUMERS, 2, below=True),
     [stats(ConsumerCount=1), stats(B, ConsumerCount=2)], {str(A): 1}),
    ("nobody sends any more", AlertCondition(AlertMetric.PRODUCERS, 1, below=True),
     [stats(), stats(B, ProducerCount=1)], {str(A): 0}),
    ("too many on their way", AlertCondition(AlertMetric.IN_FLIGHT, 5),
     [stats(InFlightCount=6), stats(B, QueueSize=9)], {str(A): 6}),
    ("expired lately", AlertCondition(AlertMetric.EXPIRED, 0), [stats(ExpiredCount=9)], {str(A): 1}),
    ("redelivered lately", AlertCondition(AlertMetric.REDELIVERED, 0), [stats(RedeliveredCount=9)], {str(A): 2}),
    ("dropped lately", AlertCondition(AlertMetric.DROPPED, 0), [stats(DroppedCount=9)], {str(A): 3}),
    ("sends that had to wait lately", AlertCondition(AlertMetric.BLOCKED, 0),
     [stats(BlockedSends=9), stats(B)], {str(A): 4}),
    ("a backlog", AlertCondition(AlertMetric.BACKLOG, 5, "prices.eu"),
     [stats(LOG, QueueSize=6), stats(NOT_DURABLE, QueueSize=7), stats(QueueSize=9)], {str(LOG): 6}),
    ("a backlog of other topics", AlertCondition(AlertMetric.BACKLOG, 5, "news.>"), [stats(LOG, QueueSize=6)], {}),
    ("offline for long", AlertCondition(AlertMetric.OFFLINE, 600), [stats(LOG)], {str(LOG): 700}),
    ("online again", AlertCondition(AlertMetric.OFFLINE, 600), [stats(LOG, ConsumerCount=1)], {}),
    ("the last consumer left", AlertCondition(AlertMetric.CONSUMER_GONE, 600),
     [stats(A), stats(B, ConsumerCount=1), stats(DLQ)], {str(A): 900}),
    ("the last consumer left a while ago", AlertCondition(AlertMetric.CONSUMER_GONE, 900), [stats(A)], {}),
    ("dead letters that came lately", AlertCondition(AlertMetric.DEAD, 3),
     [stats(DLQ, QueueSize=9, DLQ=True), stats(QueueSize=9)],
     {str(DLQ): 4}),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "rows", "expected"), [each[1:] for each in CASES], ids=[each[0] for each in CASES])
def test_what_breaks_a_rule(rule, rows, expected):
    oldest = {A: (NOW - 100) * 1000, B: (NOW - 10) * 1000}
    offline = {str(LOG): (NOW - 700) * 1000}
    gone = {str(A): NOW - 900, str(B): NOW - 900}
    readings = MetricReadings(NOW, picture(*rows), oldest, RECENT, named=NAMED, offline=offline, gone=gone)
    assert evaluate_rule(rule, readings) == RuleEvaluation(expected)


@pytest.mark.parametrize(
    ("metric", "threshold", "expected"),
    [
        (AlertMetric.STORE, 70, 80.0),
        (AlertMetric.STORE, 90, None),
        (AlertMetric.MEMORY, 10, 20.0),
        (AlertMetric.CONNECTIONS, 2, 3.0),
    ],
)
def test_rules_of_the_whole_broker(metric, threshold, expected):
    full = picture(store={"used": 80, "message_limit": 100, "machine": 400}, connections=3)
    assert broken(AlertCondition(metric, threshold), MetricReadings(NOW, full)).get(BROKER) == expected


SEEN_MS = 1_000_000
CONNECTOR = {
    "name": "berlin", "uri": "static:(tcp://b:1)", "running": True,
    "ways": [{"addresses": ["b"], "state": each, "bridges": []} for each in ("waiting", "connected")],
}  # fmt: skip
STOPPED = CONNECTOR | {"running": False}
PARTS = [
    ("a link that is down", AlertMetric.LINKS_DOWN, {"network": {"connectors": [CONNECTOR]}}, {"connector berlin": 1}),
    ("a connector that is stopped", AlertMetric.LINKS_DOWN, {"network": {"connectors": [STOPPED]}}, {}),
    ("a broker of the cluster", AlertMetric.AWAY, {"cluster": cluster("rome", MemberState.DOWN)}, {"broker rome": 1}),
    ("brokers that are all there", AlertMetric.AWAY, {"cluster": cluster("rome", MemberState.UP)}, {}),
    ("connections held back", AlertMetric.HELD_BACK, {"connected": {"all": 2, "held_back": 1}}, {BROKER: 1}),
    ("slow connections", AlertMetric.SLOW, {"connected": {"all": 2, "slow": 1}}, {BROKER: 1}),
    ("memory", AlertMetric.ROOM, {"memory": {"used": 45, "limit": 50}}, {BROKER: 90}),
    ("a transaction that was prepared and not ended", AlertMetric.PREPARED,
     {"transactions": {"prepared": 1, "oldest_ms": SEEN_MS - 700_000}}, {BROKER: 700}),
    ("no transaction that is prepared", AlertMetric.PREPARED, {"transactions": {"prepared": 0, "oldest_ms": 0}}, {}),
    ("temporary store", AlertMetric.TEMPORARY, {"store": {"temp_used": 45, "temp_limit": 50}}, {BROKER: 90}),
]  # fmt: skip


@pytest.mark.parametrize(("metric", "told", "expected"), [each[1:] for each in PARTS], ids=[each[0] for each in PARTS])
def test_rules_of_what_belongs_to_the_broker(metric, told, expected):
    node = NodeStatus("n", "b", 0, SEEN_MS, **told)
    assert broken(AlertCondition(metric, 0), MetricReadings(NOW, apply_tick(BrokerSnapshot(), NOW, [node]))) == expected


def test_a_node_that_is_gone_is_told_of_even_if_it_was_the_last():
    one = apply_tick(BrokerSnapshot(), NOW, [NodeStatus("n", "b", 0, 0)])
    assert broken(AlertCondition(AlertMetric.NODES, 2, below=True), MetricReadings(NOW, one)) == {BROKER: 1}
    assert broken(AlertCondition(AlertMetric.NODES, 1, below=True), MetricReadings(NOW, apply_tick(one, NOW, []))) == {
        BROKER: 0
    }


def test_what_is_away_is_told_of_as_a_fact():
    assert (
        sentence(AlertCondition(AlertMetric.AWAY, 0), "broker rome", 1) == "broker rome of the cluster is unreachable"
    )
    assert (
        str(AlertCondition(AlertMetric.BACKLOG, 9, "prices.>"))
        == "backlog of any durable subscription to prices.> above 9 messages"
    )


def test_a_rate_is_that_of_the_picture():
    start = initial_snapshot(NOW, 1, [stats()], BrokerSnapshot())
    later = apply_changes(start, NOW + 1, 2, [stats(EnqueueCount=50)], [])
    assert broken(AlertCondition(AlertMetric.RATE_IN, 40), MetricReadings(NOW + 1, later)) == {
        str(A): pytest.approx(50)
    }
    assert broken(AlertCondition(AlertMetric.RATE_OUT, 1, below=True), MetricReadings(NOW + 1, later)) == {str(A): 0}


def test_a_broker_without_a_node_breaks_no_rule_of_its_own():
    nobody = initial_snapshot(NOW, 1, [], BrokerSnapshot())
    assert broken(AlertCondition(AlertMetric.CONNECTIONS, 1, below=True), MetricReadings(NOW, nobody)) == {}


@pytest.mark.parametrize("metric", [AlertMetric.DEAD, AlertMetric.EXPIRED, AlertMetric.DROPPED])
def test_what_was_counted_lately_is_told_by_the_history_whatever_a_node_that_began_anew_counts(metric):
    rows = [stats(DLQ, DLQ=True), stats(B, DLQ=True)]
    recent = {DLQ: [DestinationPoint(NOW - 60, 9, 4, 0, 0, 4, 4, 4, 4)]}
    rule = AlertCondition(metric, 3)
    assert evaluate_rule(rule, MetricReadings(NOW, picture(*rows), recent=recent)) == RuleEvaluation({str(DLQ): 4})
    not_all = MetricReadings(NOW, picture(*rows), recent=recent, has_all_points=False)
    assert evaluate_rule(rule, not_all) == RuleEvaluation({str(DLQ): 4}, frozenset({str(B)})), (
        "nobody kept what moved there"
    )


@pytest.mark.parametrize(
    ("counted", "below", "expected"),
    [(4, False, "breaking"), (3, False, "unseen"), (2, True, "unseen"), (3, True, "")],
)
def test_of_what_nobody_watched_all_the_time_only_what_is_enough_is_known(counted, below, expected):
    rule = AlertCondition(AlertMetric.DEAD, 3, below=below)
    recent = {DLQ: [DestinationPoint(NOW - 60, 9, counted, 0, 0)]}
    seen = evaluate_rule(rule, MetricReadings(NOW, picture(stats(DLQ, DLQ=True)), recent=recent, watched=False))
    assert [name for name in ("breaking", "unknown", "unseen") if getattr(seen, name)] == [expected] * bool(expected)
    ended = transitions(rule, {str(DLQ): OpenSubject(NOW - 99, True)}, seen, NOW).end
    assert bool(ended) is (not expected), "what nobody saw makes nothing good"


@pytest.mark.parametrize(
    ("looks", "expected"),
    [(range(NOW - 600, NOW + 1, 10), True), (range(NOW - 540, NOW - 59, 60), True), ([], False),
     (range(NOW - 530, NOW + 1, 10), False), (range(NOW - 600, NOW - 70, 10), False),
     ([*range(NOW - 600, NOW - 300, 10), *range(NOW - 230, NOW + 1, 10)], False)],
    ids=["always", "now and then", "never", "since a while", "until a while ago", "with a gap"],
)  # fmt: skip
def test_somebody_looked_all_the_time_or_not(looks, expected):
    assert was_monitored(looks, NOW) is expected


RULE = AlertCondition(AlertMetric.DEPTH, 10, hold=60)
MOVES = [
    ("it begins", {}, {"a": 11}, AlertTransitions(frozenset("a"), frozenset(), frozenset())),
    (
        "it is held",
        {"a": OpenSubject(NOW - 59, False)},
        {"a": 11},
        AlertTransitions(frozenset(), frozenset(), frozenset()),
    ),
    (
        "it fires",
        {"a": OpenSubject(NOW - 60, False)},
        {"a": 11},
        AlertTransitions(frozenset(), frozenset("a"), frozenset()),
    ),
    (
        "it fires once",
        {"a": OpenSubject(NOW - 99, True)},
        {"a": 11},
        AlertTransitions(frozenset(), frozenset(), frozenset()),
    ),
    ("it ends", {"a": OpenSubject(NOW - 99, True)}, {}, AlertTransitions(frozenset(), frozenset(), frozenset("a"))),
    (
        "it ends before it fired",
        {"a": OpenSubject(NOW - 5, False)},
        {},
        AlertTransitions(frozenset(), frozenset(), frozenset("a")),
    ),
]


@pytest.mark.parametrize(("known", "now", "expected"), [each[1:] for each in MOVES], ids=[each[0] for each in MOVES])
def test_what_follows_from_one_look(known, now, expected):
    assert transitions(RULE, known, RuleEvaluation(now), NOW) == expected


def test_without_a_hold_time_it_fires_at_once():
    assert transitions(AlertCondition(AlertMetric.DEPTH, 10), {}, RuleEvaluation({"a": 11}), NOW).fire == frozenset("a")


@pytest.mark.parametrize(("below", "over"), [(False, "ab"), (True, "b")])
def test_what_is_not_known_does_not_begin_and_what_lost_its_place_in_the_history_is_at_nothing(below, over):
    known = {"a": OpenSubject(NOW - 99, True), "b": OpenSubject(NOW - 99, True)}
    found = transitions(
        AlertCondition(AlertMetric.DEAD, 10, below=below), known, RuleEvaluation({}, frozenset("ac")), NOW
    )
    assert found == AlertTransitions(frozenset(), frozenset(), frozenset(over))
    assert STILL >= LATELY_SECONDS, "only what stood still for all the time that is counted loses it"


def test_the_worst_begin_and_what_is_open_stays_so_though_others_are_worse():
    many = {f"q{number}": float(number) for number in range(11, 311)}
    begun = transitions(RULE, {}, RuleEvaluation(many), NOW)
    assert (len(begun.begin), min(many[each] for each in begun.begin)) == (MAX_OPEN, 211)
    known = {f"q{number}": OpenSubject(NOW - 9, False) for number in range(11, 11 + MAX_OPEN)}
    assert transitions(RULE, known, RuleEvaluation(many), NOW) == AlertTransitions(
        frozenset(), frozenset(), frozenset()
    )
    del many["q11"]
    assert transitions(RULE, known, RuleEvaluation(many), NOW) == AlertTransitions(
        frozenset({"q310"}), frozenset(), frozenset({"q11"})
    )


def test_a_rule_reads_as_a_sentence():
    assert (
        str(AlertCondition(AlertMetric.DEPTH, 1000, "orders.>", hold=300))
        == "depth of orders.> above 1,000 messages for 5 min"
    )
    assert str(AlertCondition(AlertMetric.STORE, 80)) == "store above 80%"
    assert str(AlertCondition(AlertMetric.BACKUPS, 0)) == "number of failed backups above 0"
    assert str(AlertCondition(AlertMetric.CONSUMERS, 1, "q", below=True)) == "number of consumers of q below 1"
    said = sentence(AlertCondition(AlertMetric.BACKUPS, 0), "broker", 2)
    assert said == "broker: number of failed backups is 2, above 0"
    said = sentence(AlertCondition(AlertMetric.CERTIFICATE, 21, below=True), "broker", 1)
    assert said == "broker: time until the certificate expires is 1 day, below 21"
    said = sentence(AlertCondition(AlertMetric.OLDEST, 60), "queue://a", 240)
    assert said == "a: oldest message is 4 min, above 1 min"


# -- what it would have done


def looked(minutes: int, **more) -> list[BrokerPoint]:
    base = dict.fromkeys(BrokerPoint._fields[1:], 0) | more
    return [BrokerPoint(NOW + 60 * minute, **base) for minute in range(minutes)]


def at(minute: int, pending: int, arrived: int = 0, left: int = 0, consumers: int = 1) -> DestinationPoint:
    return DestinationPoint(NOW + 60 * minute, pending, arrived, left, consumers)


REPLAYS = [
    ("depth held long enough", AlertCondition(AlertMetric.DEPTH, 10, hold=120),
     [at(2, 20, 20), at(6, 0, 0, 20)], [(4, 6, 20)]),
    ("depth not held", AlertCondition(AlertMetric.DEPTH, 10, hold=120), [at(2, 20, 20), at(3, 0, 0, 20)], []),
    ("held to between two samples", AlertCondition(AlertMetric.DEPTH, 10, hold=150),
     [at(2, 20, 20), at(6, 0, 0, 20)], [(4, 6, 20)]),
    ("it lasts", AlertCondition(AlertMetric.DEPTH, 10), [at(7, 20, 20)], [(7, None, 20)]),
    ("a rate", AlertCondition(AlertMetric.RATE_IN, 1), [at(3, 0, 600, 600), at(4, 0, 6, 6)], [(3, 4, 10)]),
    ("nobody consumed", AlertCondition(AlertMetric.NO_CONSUMER, 0), [at(1, 5, 5, consumers=0), at(3, 5)], [(1, 3, 5)]),
    ("too few consumed", AlertCondition(AlertMetric.CONSUMERS, 2, below=True),
     [at(1, 5, 5, consumers=2), at(3, 5), at(5, 5, consumers=2)], [(3, 5, 1)]),
    ("the oldest, by the order in which they leave", AlertCondition(AlertMetric.OLDEST, 150),
     [at(1, 5, 5), at(5, 2, 0, 3), at(6, 0, 0, 2)], [(4, 6, 240)]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "points", "expected"), [each[1:] for each in REPLAYS], ids=[each[0] for each in REPLAYS]
)
def test_a_replay_says_when_a_rule_would_have_fired(rule, points, expected):
    found = replay(rule, {A: points}, looked(9), 60)
    minutes = [((each.fired - NOW) // 60, each.ended and (each.ended - NOW) // 60, each.worst) for each in found]
    assert minutes == expected


def test_a_replay_of_the_broker_and_of_dead_letters():
    assert len(replay(AlertCondition(AlertMetric.CONNECTIONS, 2), {}, looked(3, connections=5), 60)) == 1
    found = replay(AlertCondition(AlertMetric.DEAD, 5), {DLQ: [at(1, 3, 3), at(2, 9, 6)]}, looked(20), 60)
    assert [(each.subject, each.worst) for each in found] == [(str(DLQ), 9)]


def test_a_disk_that_fills_up_breaks_a_rule_and_what_is_reserved_there_does_not_count():
    rule = AlertCondition(AlertMetric.DISK, 80)
    assert broken(rule, MetricReadings(NOW, picture(store={"disk": {"total": 1000, "free": 100, "reserved": 50}}))) == {
        BROKER: 85.0
    }
    assert (
        broken(rule, MetricReadings(NOW, picture(store={"disk": {"total": 1000, "free": 150, "reserved": 60}}))) == {}
    )
    assert broken(rule, MetricReadings(NOW, picture())) == {}


def test_a_replay_knows_nothing_of_what_was_not_kept_yet():
    before, after = looked(3, nodes=None), looked(6, nodes=1)[3:]
    found = replay(AlertCondition(AlertMetric.NODES, 2, below=True), {}, before + after, 60)
    assert [(each.subject, (each.fired - NOW) // 60) for each in found] == [(BROKER, 3)]


@pytest.mark.parametrize("metric", AlertMetric)
def test_what_is_said_to_be_kept_can_be_replayed_and_nothing_else(metric):
    consumed = DestinationPoint(NOW + 60, 9, 99, 99, 9, 9, 9, 9, 9)
    points = {A: [consumed], B: [consumed._replace(consumers=0)]}
    past = looked(5, **dict.fromkeys(BrokerPoint._fields[1:], 9))
    assert bool(replay(AlertCondition(metric, 0.5), points, past, 60)) is DESCRIPTIONS[metric].has_history


@pytest.mark.parametrize(("metric", "page"), PAGES.items())
def test_metrics_that_name_a_page_exist_and_are_of_no_destination(metric, page):
    described = DESCRIPTIONS[AlertMetric(metric)]
    assert described.of_broker or described.of_objectives
    assert resolve(reverse(page)).url_name == page
