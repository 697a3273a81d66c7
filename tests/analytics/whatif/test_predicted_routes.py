"""Test conditions and predicted routes of what-if analyses. No Spark."""

import itertools
from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from analytics.requests.request import TimeWindow
from analytics.requests.whatif_request import WhatIfRequest
from analytics.whatif import predicted_routes, report
from analytics.whatif.answer_encoding import AnswerEncoding
from analytics.whatif.comparison import WhatIfComparison
from analytics.whatif.conditions import ScriptedRouting, SelectorOracle, TooManyConditions
from analytics.whatif.message_counts import MessageClasses, TimeBuckets, WhatIfTally
from analytics.whatif.predicted_routes import predict_route
from analytics.whatif.untested_changes import untested_changes
from brokerapp.engine.routing.bindings import Binding, RoutingType
from brokerapp.engine.routing.cycle_detection import find_cycle
from brokerapp.engine.routing.route_walk import route
from brokerapp.engine.routing.routing_context import RoutingContext, SubscriptionLog
from brokerapp.model.definitions import (
    CompositeDestination,
    Definitions,
    ForwardTarget,
    MirroredQueue,
    PolicyEntry,
    RedeliveryPolicy,
    RedeliverySettings,
    VirtualTopic,
)
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message
from brokerapp.model.subscription_identity import SubscriptionIdentity
from brokerapp.selectors import SelectorView

QUEUES = ("a", "b", "c", "Consumer.X.T.one", "Consumer.Y.T.two", "Consumer.Z.T.>")
TOPICS = ("T.one", "T.two", "U")
SELECTORS = (None, None, "red", "NOT red", "size > 3", "size IS NULL", "JMSDestination = 'queue://a'", "red OR blue")
HEADERS = [
    {name: value for name, value in zip(("red", "blue", "size"), values, strict=True) if value is not None}
    for values in itertools.product((None, "true", "false"), (None, "true"), (None, "2", "9"))
]
EVERY = [*(Destination.queue(name) for name in ("a", "b", "in")), *(Destination.topic(name) for name in TOPICS)]


def random_definitions(random: Random) -> Definitions:
    found = []
    for name in random.sample(("a", "b", "in", "*"), random.randint(1, 3)):
        found.append(random_composite(random, Destination.queue(name)))
    for name in random.sample(TOPICS, random.randint(0, 2)):
        found.append(random_composite(random, Destination.topic(name)))
    if random.random() < 0.7:
        found.append(VirtualTopic("T.>", selector_aware=random.random() < 0.5))
    if random.random() < 0.3:
        found.append(MirroredQueue("T.", ""))
    return Definitions(1, tuple(found))


def random_composite(random: Random, own: Destination) -> CompositeDestination:
    legs = tuple(ForwardTarget(random.choice(EVERY), random.choice(SELECTORS)) for _ in range(random.randint(1, 3)))
    return CompositeDestination(
        own, legs, forward_only=random.random() < 0.5, send_when_not_matched=random.random() < 0.4,
        strict=random.random() < 0.2,
    )  # fmt: skip


def random_circumstances(random: Random) -> RoutingContext:
    bindings = [
        Binding("U", "c", filter=random.choice(SELECTORS)),
        Binding("b", "shared.1", RoutingType.ANYCAST),
        Binding("b", "shared.2", RoutingType.ANYCAST),
    ]
    kept = [
        SubscriptionLog(
            SubscriptionIdentity("me", "one", (Destination.topic("T.>"),), "size > 3"), "subscription://me:one"
        ),
        SubscriptionLog(
            SubscriptionIdentity("me", "two", (Destination.topic("U"),)), "subscription://me:two", persistent_only=True
        ),
    ]
    wanted = {"Consumer.X.T.one": ("red",), "Consumer.Y.T.two": ("blue", "size > 3"), "Consumer.Z.T.>": (None,)}
    return RoutingContext(
        tuple(random.sample(QUEUES, 4)), tuple(random.sample(bindings, 2)), tuple(random.sample(kept, 1)), wanted
    )


def test_what_reaches_only_topics_without_subscribers_reaches_nothing():
    fan = CompositeDestination(Destination.queue("in"), (ForwardTarget(Destination.topic("Quiet")),))
    kept = SubscriptionLog(SubscriptionIdentity("me", "one", (Destination.topic("Kept"),)), "subscription://me:one")
    for sent, listened, lost in (
        ("queue://in", (), True),
        ("queue://in", ("Loud.>",), True),
        ("queue://in", ("Quiet",), False),
        ("topic://Loud.one", ("Loud.>",), False),
        ("topic://Loud.one", (), True),
        ("topic://Kept", (), False),
        ("queue://other", (), False),
        ("queue://in", None, False),  # asked by a console that does not say
    ):
        circumstances = RoutingContext.from_json(RoutingContext(kept=(kept,), listened=listened).to_json())
        tally, none = _one(Definitions(1, (fan,)), circumstances, sent), not listened
        assert (tally.count(tally.lost), sent, none) == (int(lost), sent, none)


def _one(definitions: Definitions, circumstances: RoutingContext, sent: str) -> WhatIfTally:
    """What becomes of one message."""
    one, none, oracle = np.array([1]), np.array([0]), SelectorOracle()
    classes = MessageClasses([(sent, ())], one, none, none, sent=one, bytes=one, bare=0)
    routing = ScriptedRouting(circumstances.topology(definitions, oracle.compile_scripted), oracle)
    return WhatIfTally.of(
        routing, classes, AnswerEncoding.of({sent: ()}), TimeBuckets(0, 60, 1), circumstances.has_subscribers
    )


def message(headers):
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    return Message("ID:1", f"message-id:ID\\c1\n{lines}".encode(), b"")


def copies(found, sharing):
    """Copies of a route by name, those of queues that take turns under their address."""
    names = [
        str(each.shown) if each.shown and each.destination.name in sharing else str(each.destination.physical)
        for each in (*found.queues, *found.topics)
    ]
    return Counter(names)


@pytest.mark.parametrize("seed", range(150))
def test_the_way_of_a_class_is_the_route_of_each_of_its_messages(seed):
    random = Random(seed)
    definitions, circumstances = random_definitions(random), random_circumstances(random)
    if find_cycle(definitions):
        return
    oracle = SelectorOracle()
    routing = ScriptedRouting(circumstances.topology(definitions, oracle.compile_scripted), oracle)
    real = circumstances.topology(definitions)
    sharing = {each.queue for each in circumstances.bindings if each.routing is RoutingType.ANYCAST}
    for destination in EVERY:
        conditions = routing.conditions(destination)
        for headers in HEADERS:
            answers = {
                each: each.selector.evaluate(SelectorView({**headers, **each.headers}, b"")) for each in conditions
            }
            way = predict_route(routing, destination, answers)
            expected = route(message(headers), destination, real)
            assert Counter(dict(way.targets)) + Counter(dict(way.shared)) == copies(expected, sharing), headers
            assert way.is_stored == bool(expected.queues)
            assert way.is_lost() == (not expected.queues and not expected.topics)


def test_a_condition_is_the_same_wherever_it_is_asked_unless_it_asks_where():
    legs = (
        ForwardTarget(Destination.queue("x"), "red"),
        ForwardTarget(Destination.queue("y"), "JMSDestination LIKE '%one'"),
    )
    definitions = Definitions(1, (CompositeDestination(Destination.queue("in.*"), legs),))
    oracle = SelectorOracle()
    routing = ScriptedRouting(RoutingContext().topology(definitions, oracle.compile_scripted), oracle)
    red_one, place_one = routing.conditions(Destination.queue("in.one"))
    red_two, place_two = routing.conditions(Destination.queue("in.two"))
    assert red_one == red_two
    assert [each.headers for each in (place_one, place_two)] == [
        {"destination": "/queue/in.one"}, {"destination": "/queue/in.two"},
    ]  # fmt: skip


def test_what_opens_only_where_no_filter_takes_a_message_is_found_behind_others_of_its_kind():
    def exclusive(name, leg, selector):
        return CompositeDestination(
            Destination.queue(name), (ForwardTarget(Destination.queue(leg), selector),), send_when_not_matched=True
        )

    definitions = Definitions(
        1,
        (
            exclusive("in", "x", "red"),
            MirroredQueue("M.", ""),
            CompositeDestination(Destination.topic("M.in"), (ForwardTarget(Destination.queue("second")),)),
            exclusive("second", "y", "blue"),
            CompositeDestination(Destination.topic("M.second"), (ForwardTarget(Destination.queue("z"), "size > 3"),)),
        ),
    )
    oracle = SelectorOracle()
    routing = ScriptedRouting(RoutingContext().topology(definitions, oracle.compile_scripted), oracle)
    assert {each.text for each in routing.conditions(Destination.queue("in"))} == {"red", "blue", "size > 3"}


def test_a_fan_of_many_composites_that_keep_what_none_takes_is_overlooked_at_once():
    exclusive = [
        CompositeDestination(
            Destination.queue(f"e{i}"),
            (ForwardTarget(Destination.queue(f"x{i}"), f"p{i}"),),
            send_when_not_matched=True,
        )
        for i in range(30)
    ]
    fan = CompositeDestination(Destination.queue("in"), tuple(ForwardTarget(each.destination) for each in exclusive))
    oracle = SelectorOracle()
    routing = ScriptedRouting(
        RoutingContext().topology(Definitions(1, (fan, *exclusive)), oracle.compile_scripted), oracle
    )
    conditions = routing.conditions(Destination.queue("in"))
    assert len(conditions) == 30
    answers = {each: each.text == "p3" for each in conditions}
    assert dict(predict_route(routing, Destination.queue("in"), answers).targets) == {
        "queue://x3": 1, **{f"queue://e{i}": 1 for i in range(30) if i != 3},
    }  # fmt: skip


def test_a_way_that_was_overlooked_is_an_error_not_a_wrong_figure():
    oracle = SelectorOracle()
    definitions = Definitions(
        1, (CompositeDestination(Destination.queue("in"), (ForwardTarget(Destination.queue("x"), "red"),)),)
    )
    routing = ScriptedRouting(RoutingContext().topology(definitions, oracle.compile_scripted), oracle)
    with pytest.raises(TooManyConditions, match="sent to queue://in is asked 'red' only in rare combinations"):
        predict_route(routing, Destination.queue("in"), {})


def test_a_way_without_an_end_is_named():
    oracle = SelectorOracle()
    legs = (ForwardTarget(Destination.queue("in.again"), "red"), ForwardTarget(Destination.queue("x"), "blue"))
    definitions = Definitions(1, (CompositeDestination(Destination.queue("in.*"), legs),))
    routing = ScriptedRouting(RoutingContext().topology(definitions, oracle.compile_scripted), oracle)
    with pytest.raises(TooManyConditions, match="the definitions form a loop"):
        routing.conditions(Destination.queue("in.one"))


def test_circumstances_travel_as_plain_values():
    found = random_circumstances(Random(3))
    assert RoutingContext.from_json(found.to_json()) == found


def test_where_nothing_was_defined_a_leg_that_keeps_is_said_to_have_kept_what_the_target_got():
    own, elsewhere = (
        predicted_routes.TargetUse("new", "queue://in", "queue://in"),
        predicted_routes.TargetUse("new", "queue://in", "queue://out"),
    )
    in_force = predicted_routes.PredictedRoute((("queue://in", 1),), (), (), is_stored=True, problem="")
    both = (("queue://in", 1), ("queue://out", 1))
    draft = predicted_routes.PredictedRoute(both, (), ((own, True), (elsewhere, True)), is_stored=True, problem="")
    one, none = np.array([1]), np.array([0])
    sent = MessageClasses([("queue://in", ())], one, none, none, sent=np.array([10_441]), bytes=one, bare=0)
    tallies = [WhatIfTally(sent, [way], 1) for way in (in_force, draft)]
    found = WhatIfComparison(*tallies, TimeBuckets(0, 60, 1), removal_rates={}, backlogs={}, sharing={})
    counts = {leg.target: (before.counts[True], after.counts[True]) for leg, before, after in found.target_uses}
    assert counts == {"queue://in": (10_441, 10_441), "queue://out": (0, 10_441)}
    assert {each.name: int(each.in_force.messages.sum()) for each in found.targets}["queue://in"] == 10_441


def compared(definitions: Definitions, proposed: Definitions, *sent: str) -> WhatIfComparison:
    """What these make of a message sent to each of those."""
    circumstances, keys = RoutingContext(("Consumer.X.T.one",)), [(each, ()) for each in sent]
    each, row = np.arange(len(sent)), np.ones(len(sent), np.int64)
    classes = MessageClasses(keys, row, each, np.zeros(len(sent), np.int64), sent=row, bytes=row, bare=0)
    tallies = []
    for one in (definitions, proposed):
        oracle = SelectorOracle()
        routing = ScriptedRouting(circumstances.topology(one, oracle.compile_scripted), oracle)
        tallies.append(WhatIfTally(classes, [predict_route(routing, Destination.parse(each), {}) for each in sent], 1))
    return WhatIfComparison(*tallies, TimeBuckets(0, 60, 1), removal_rates={}, backlogs={}, sharing={})


TO_OUT = (ForwardTarget(Destination.queue("out")),)
UNTRIED = [
    ("a queue nobody sent to", CompositeDestination(Destination.queue("in"), TO_OUT), ["queue://other"], ["queue in"]),
    ("a queue somebody sent to", CompositeDestination(Destination.queue("in"), TO_OUT), ["queue://in"], []),
    (
        "a topic of that name is another",
        CompositeDestination(Destination.queue("in"), TO_OUT),
        ["topic://in"],
        ["queue in"],
    ),
    (
        "one that a definition brings something",
        CompositeDestination(Destination.queue("brought"), TO_OUT),
        ["queue://first"],
        [],
    ),
    ("a virtual topic without queues", VirtualTopic("New.>"), ["topic://New.one"], []),
    ("a virtual topic nobody sent to", VirtualTopic("New.>"), ["topic://T.one"], ["topic New.>"]),
    ("mirroring", MirroredQueue(), ["topic://T.one"], ["any queue"]),
]


@pytest.mark.parametrize(("new", "sent", "said"), [each[1:] for each in UNTRIED], ids=[each[0] for each in UNTRIED])
def test_what_a_draft_changes_where_nothing_was_sent_is_said_to_be_untried(new, sent, said):
    known = CompositeDestination(Destination.queue("first"), (ForwardTarget(Destination.queue("brought")),))
    current, proposed = Definitions(1, (known,)), Definitions(2, (known, new))
    assert untested_changes(current, proposed, compared(current, proposed, *sent)) == said
    assert untested_changes(proposed, current, compared(proposed, current, *sent)) == said, "it was taken away"
    assert untested_changes(current, current, compared(current, current, *sent)) == []


def test_a_draft_that_changes_nothing_as_nothing_was_sent_there_says_so_in_its_sentence():
    current, proposed = Definitions(1, ()), Definitions(2, (CompositeDestination(Destination.queue("in"), TO_OUT),))
    comparison = compared(current, proposed, "queue://other")
    trial = WhatIfRequest(current, proposed, RoutingContext())
    found = report.build_result(comparison, trial, [], 1, [], TimeWindow(0, 60_000_000))
    assert "because no messages were sent to queue in" in found.sentence
    flow = pa.table({"weight": [1], "rolled_back": [0]})
    note, *_ = report.notes(comparison, trial, flow, [], [])
    assert note.startswith("No messages were sent or forwarded to queue in in this time range.")


def test_what_is_untried_is_no_reason_where_another_change_was_tried():
    # what came to `used` went to `out` before, too: changed, tried, and the same
    used = CompositeDestination(Destination.queue("used"), TO_OUT)
    current = Definitions(1, (used,))
    proposed = Definitions(
        2, (replace(used, forward_only=not used.forward_only), CompositeDestination(Destination.queue("in"), TO_OUT))
    )
    comparison = compared(current, current, "queue://used")
    trial = WhatIfRequest(current, proposed, RoutingContext())
    sentence = report.build_result(comparison, trial, [], 1, [], TimeWindow(0, 60_000_000)).sentence
    assert "as many messages as the active version. No messages were sent to queue in" in sentence


def test_policies_and_redelivery_that_a_draft_changes_too_are_said_not_to_be_judged():
    kept, gone, new = (PolicyEntry(Destination.queue(name)) for name in ("kept", "gone", "new"))
    again = RedeliveryPolicy(Destination.queue("again"))
    current = Definitions(1, (), (kept, gone), RedeliverySettings((again,)))
    changed = RedeliverySettings((replace(again, maximum_redeliveries=1),), fallback_to_dead_letter=False)
    proposed = Definitions(2, (), (kept, new), changed)
    flow = pa.table({"weight": [1], "rolled_back": [0]})

    def said(before: Definitions, after: Definitions) -> list[str]:
        trial = WhatIfRequest(before, after, RoutingContext())
        found = report.notes(compared(before, after, "queue://other"), trial, flow, [], [])
        return [each.partition(". Effects")[0] for each in found if "are excluded" in each]

    all_of_them = "2 policies, 1 redelivery policy and options of the redelivery plugin"
    assert said(current, proposed) == [f"The draft also changes {all_of_them}"]
    assert said(current, replace(current, policies=(kept,))) == ["The draft also changes 1 policy"]
    assert said(current, current) == []


def test_a_composite_queue_in_force_that_would_begin_to_keep_messages_is_not_said_to_be_missing():
    forwards = CompositeDestination(Destination.queue("in"), TO_OUT)
    current, proposed = Definitions(1, (forwards,)), Definitions(2, (replace(forwards, forward_only=False),))
    trial = WhatIfRequest(current, proposed, RoutingContext(("out",)))
    comparison = compared(current, proposed, "queue://in")
    [note] = report.notes(comparison, trial, pa.table({"weight": [1], "rolled_back": [0]}), [], [])
    assert note.startswith("These queues do not exist yet and have no consumers: queue://in.")
