"""Test which subscriptions a bridge has for the consumers at its other end."""

from dataclasses import replace

import pytest

from brokerapp.model.destination import Destination
from brokerapp.network.bridge.demand import MAX_ORIGINS, NO_CHANGE, Demand, DemandChange
from brokerapp.network.links.remote_consumers import read_consumer
from brokerapp.network.options.address import BrokerAddress
from brokerapp.network.options.options import ConnectorOptions

TERMS = ConnectorOptions("bridge", (BrokerAddress("b", 1),), decrease_network_consumer_priority=False)
CLASSES = {"queue": "ActiveMQQueue", "topic": "ActiveMQTopic", "temp-queue": "ActiveMQTempQueue"}


def demand(**changes):
    return Demand(replace(TERMS, **changes), "A", "B")


def consumer(number, destination="queue://q", path=(), **more):
    kind, _, name = destination.partition("://")
    return read_consumer(
        {
            "consumerId": {"connectionId": "c", "sessionId": -1, "value": number},
            "destination": {"@class": CLASSES[kind], "string": name},
            "brokerPath": {"BrokerId": [{"value": each} for each in path]},
            **more,
        }
    )


def gone(number):
    return f"c:-1:{number}"


def begun(of, *consumers):
    return [str(each.destination) for info in consumers for each in of.on_consumer_started(info).begin]


def test_all_consumers_of_a_destination_are_one_until_the_last_is_gone():
    found = demand()
    assert begun(found, consumer(1), consumer(2)) == ["queue://q"]
    assert found.on_consumer_stopped(gone(1)).end == ()
    assert [str(each.destination) for each in found.on_consumer_stopped(gone(2)).end] == ["queue://q"]
    assert begun(found, consumer(3)) == ["queue://q"]


def test_without_conduit_each_has_one_with_its_selector_and_priority():
    found = demand(conduit_subscriptions=False)
    [first] = found.on_consumer_started(consumer(1, selector="a = 1", priority=7)).begin
    [second] = found.on_consumer_started(consumer(2)).begin
    assert (first.selector, first.priority, second.selector) == ("a = 1", 7, None)
    assert found.on_consumer_stopped(gone(1)).end == (first,)


def test_a_narrower_consumer_joins_a_wider_one():
    found = demand()
    assert begun(found, consumer(1, "topic://T.>"), consumer(2, "topic://T.a")) == ["topic://T.>"]


@pytest.mark.parametrize("selectors", [False, True])
def test_when_a_wider_consumer_goes_only_what_the_others_want_crosses(selectors):
    found = demand(conduit_selectors=selectors)
    [wide] = found.on_consumer_started(consumer(1, "topic://T.>")).begin
    for number, name in enumerate(("T.a", "T.b.*", "T.b.c", "T.a"), start=2):
        found.on_consumer_started(consumer(number, f"topic://{name}", selector="x = 1"))
    change = found.on_consumer_stopped(gone(1))
    assert wide in change.end
    kept = [each for each in change.begin if each not in change.end]
    assert {str(each.destination): len(each.consumers) for each in kept} == {"topic://T.a": 2, "topic://T.b.*": 2}
    assert {each.selector for each in kept} == {"x = 1" if selectors else None}
    assert set(found.subscriptions) == {each.id for each in kept}
    assert found.on_consumer_stopped(gone(3)).end[0].destination.name == "T.b.*"


@pytest.mark.scenario("NB-36")
@pytest.mark.parametrize(
    ("changes", "info"),
    [
        ({}, consumer(1, browser=True)),
        ({}, consumer(1, path=("C",))),
        ({"consumer_ttl": 2}, consumer(1, path=("C", "D"))),
        ({"consumer_ttl": -1}, consumer(1, path=("C", "A"))),
        ({"excluded": (Destination.queue(">"),)}, consumer(1)),
        ({"dynamically_included": (Destination.queue("other"),)}, consumer(1)),
        ({"dynamically_included": (Destination.topic("q"),)}, consumer(1)),
        ({"bridge_temp_destinations": False}, consumer(1, "temp-queue://t")),
        ({}, consumer(1, "topic://ActiveMQ.Advisory.Queue")),
    ],
)
def test_what_is_no_demand(changes, info):
    assert demand(**changes).on_consumer_started(info) == NO_CHANGE


@pytest.mark.scenario("NB-07")
@pytest.mark.parametrize(
    ("path", "priority"),
    [((), -5), (("C",), -8), (("C", "D"), -9)],
)
def test_the_farther_a_consumer_the_lower_its_priority(path, priority):
    found = demand(decrease_network_consumer_priority=True, consumer_ttl=-1)
    [wanted] = found.on_consumer_started(consumer(1, path=path, priority=3)).begin
    assert (wanted.priority, wanted.path) == (priority, ("B", *path))


@pytest.mark.scenario("NB-06")
def test_what_is_included_statically_is_wanted_without_consumers_and_stays_excluded_or_not():
    listed = Destination.queue("always")
    found = demand(statically_included=(listed,), excluded=(listed,))
    assert [each.destination for each in found.start_static().begin] == [listed]
    assert found.on_consumer_started(consumer(1, "queue://always")) == NO_CHANGE
    assert found.on_consumer_stopped(gone(1)) == NO_CHANGE
    assert demand(statically_included=(listed,), excluded=(listed,), exclude_static=True).start_static() == NO_CHANGE


@pytest.mark.scenario("NB-44")
def test_a_durable_subscription_is_wanted_until_it_is_deleted():
    found = demand()
    [wanted] = found.on_consumer_started(consumer(1, "topic://t", subscriptionName="s", clientId="x")).begin
    assert wanted.durable
    assert found.on_consumer_stopped(gone(1)) == NO_CHANGE
    assert found.on_consumer_started(consumer(2, "topic://t", subscriptionName="s", clientId="x")) == NO_CHANGE
    assert found.on_consumer_started(consumer(3, "topic://t", subscriptionName="s", clientId="y")) == NO_CHANGE
    assert found.on_subscription_removed("x", "s") == NO_CHANGE
    assert found.on_subscription_removed("y", "s").end == (wanted,)


def test_a_durable_subscription_of_a_broker_that_names_no_clients_is_known_again():
    found = demand()
    [wanted] = found.on_consumer_started(consumer(1, "topic://t", subscriptionName="s")).begin
    assert found.on_subscription_removed("x", "s").end == (wanted,)


@pytest.mark.parametrize(("dynamic_only", "wanted"), [(False, ["topic://t"]), (True, [])])
def test_a_durable_subscription_nobody_consumes_is_wanted_unless_only_what_is_dynamic_is(dynamic_only, wanted):
    found = demand(dynamic_only=dynamic_only)
    assert begun(found, consumer(1, "topic://t", subscriptionName="s", active=False)) == wanted
    [again] = (
        *found.subscriptions.values(),
        *found.on_consumer_started(consumer(2, "topic://t", subscriptionName="s")).begin,
    )
    assert again.durable


@pytest.mark.scenario("NB-35")
def test_one_for_all_takes_what_any_of_their_selectors_takes_if_it_is_to():
    found = demand(conduit_selectors=True)
    [first] = found.on_consumer_started(consumer(1, selector="a = 1")).begin
    assert first.selector == "a = 1"
    change = found.on_consumer_started(consumer(2, selector="b = 2"))
    assert (change.end, [each.selector for each in change.begin]) == ((first,), ["(a = 1) OR (b = 2)"])
    assert found.on_consumer_started(consumer(3, selector="b = 2")) == DemandChange(other=(*change.begin,))
    assert [each.selector for each in found.on_consumer_started(consumer(4)).begin] == [None]
    assert [each.selector for each in found.on_consumer_stopped(gone(4)).begin] == ["(a = 1) OR (b = 2)"]
    assert found.on_consumer_stopped(gone(2)).begin == ()
    assert [each.selector for each in found.on_consumer_stopped(gone(3)).begin] == ["a = 1"]
    assert len(found.on_consumer_stopped(gone(1)).end) == 1
    assert found.subscriptions == {}


def test_without_that_one_for_all_takes_everything():
    [wanted] = demand().on_consumer_started(consumer(1, selector="a = 1")).begin
    assert wanted.selector is None


def test_a_subscription_names_the_consumer_it_is_for_also_where_bridges_lie_between():
    found = demand(consumer_ttl=2)
    behind = {"ConsumerId": [{"connectionId": "far", "sessionId": -1, "value": 7}]}
    [near] = found.on_consumer_started(consumer(1)).begin
    [far] = found.on_consumer_started(consumer(2, path=("C",), networkConsumerPath=behind)).begin
    assert (near.origins, far.origins) == ({"c:-1:1"}, {"far:-1:7"})


@pytest.mark.parametrize("durable", [{}, {"subscriptionName": "s", "clientId": "x"}])
def test_one_for_several_is_as_near_as_the_nearest_of_them(durable):
    found = demand(consumer_ttl=-1, decrease_network_consumer_priority=True)
    other = {**durable, "clientId": "y"} if durable else {}
    [wanted] = found.on_consumer_started(consumer(1, "topic://t", ("C", "D"), **durable)).begin
    assert found.on_consumer_started(consumer(2, "topic://t", ("C",), **other)).other == (wanted,)
    assert (wanted.path, wanted.priority) == (("B", "C"), -8)
    assert found.on_origins_changed(consumer(1, "topic://t", **durable)).other == (wanted,)
    assert (wanted.path, wanted.priority) == (("B",), -5)
    assert found.on_origins_changed(consumer(1, "topic://t", ("C", "D", "E"), **durable)).other == (wanted,)
    assert wanted.path == ("B", "C")


def test_one_of_a_queue_changes_its_place_by_a_new_subscription():
    found = demand(consumer_ttl=-1, decrease_network_consumer_priority=True)
    [far] = found.on_consumer_started(consumer(1, path=("C", "D"))).begin
    change = found.on_origins_changed(consumer(1, path=("C",)))
    assert change.end == (far,)
    assert [(each.path, each.priority) for each in change.begin] == [(("B", "C"), -8)]
    assert set(found.subscriptions) == {each.id for each in change.begin}


def test_the_consumer_of_a_bridge_counts_as_soon_as_it_is_near_and_no_more_when_it_is_not():
    found = demand(consumer_ttl=2)
    far, near = consumer(1, path=("C", "D")), consumer(1, path=("C",))
    assert found.on_consumer_started(far) == found.on_origins_changed(far) == NO_CHANGE
    [wanted] = found.on_origins_changed(near).begin
    assert found.on_origins_changed(consumer(1, path=("A",))).end == (wanted,)
    assert found.subscriptions == {}


def test_of_the_consumer_of_a_bridge_it_is_known_whom_it_is_for_now():
    found = demand(consumer_ttl=2)
    behind = [{"connectionId": "far", "sessionId": -1, "value": number} for number in (7, 8)]
    [wanted] = found.on_consumer_started(consumer(1, path=("C",), networkConsumerPath={"ConsumerId": behind[:1]})).begin
    assert found.on_origins_changed(consumer(1, path=("C",), networkConsumerPath={"ConsumerId": behind})).other == (
        wanted,
    )
    assert wanted.origins == {"far:-1:7", "far:-1:8"}


@pytest.mark.scenario("NB-53")
def test_a_list_of_destinations_is_taken_apart():
    assert begun(demand(), consumer(1, "queue://q,topic://t")) == ["queue://q", "topic://t"]


@pytest.mark.scenario("NB-58")
@pytest.mark.parametrize("first", [1, 2])
def test_a_second_way_to_a_consumer_adds_no_subscription_and_either_may_go(first):
    """As far as this bridge goes; which of several bridges serves is a matter of duplicate_suppression."""
    found, origin = demand(consumer_ttl=3), {"networkConsumerPath": {"ConsumerId": {"connectionId": "far"}}}
    short, long = consumer(1, "topic://t", ("C",), **origin), consumer(2, "topic://t", ("D", "C"), **origin)
    assert begun(found, short, long) == ["topic://t"]
    [wanted] = found.subscriptions.values()
    assert (wanted.path, wanted.origins) == (("B", "C"), frozenset({"far::"}))
    assert found.on_consumer_stopped(gone(first)).end == ()
    assert wanted.path == (("B", "D", "C") if first == 1 else ("B", "C"))
    assert found.on_consumer_stopped(gone(3 - first)).end == (wanted,)


@pytest.mark.scenario("NB-57")
@pytest.mark.parametrize("order", [("durable", "plain"), ("plain", "durable")])
def test_a_plain_consumer_and_a_durable_one_of_a_topic_have_one_each_whichever_goes_first(order):
    found, named = demand(), {"clientId": "c", "subscriptionName": "s"}
    assert begun(found, consumer(1, "topic://t"), consumer(2, "topic://t", **named)) == ["topic://t", "topic://t"]
    for each in order:
        [over] = (
            found.on_subscription_removed("c", "s") if each == "durable" else found.on_consumer_stopped(gone(1))
        ).end
        assert over.durable is (each == "durable")
    assert found.subscriptions == {}
    assert begun(found, consumer(3, "topic://t", **named)) == ["topic://t"]  # again


def test_consumers_of_other_bridges_on_a_queue_are_not_merged():
    found = demand(consumer_ttl=2)
    assert begun(found, consumer(1), consumer(2, path=("C",)), consumer(3, path=("D",))) == ["queue://q"] * 3
    merged = demand(consumer_ttl=2, conduit_network_queue_subscriptions=True)
    assert begun(merged, consumer(1), consumer(2, path=("C",))) == ["queue://q"]


def test_a_subscription_for_several_is_told_of_all_of_them():
    found = demand()
    [wanted] = found.on_consumer_started(consumer(1)).begin
    assert found.on_consumer_started(consumer(2)).other == (wanted,)
    assert wanted.origins == {"c:-1:1", "c:-1:2"}
    assert found.on_consumer_stopped(gone(1)).other == (wanted,)
    assert wanted.origins == {"c:-1:2"}
    for number in range(3, MAX_ORIGINS + 4):
        found.on_consumer_started(consumer(number))
    assert wanted.origins == frozenset()


def test_where_that_is_forced_any_consumer_of_a_topic_is_served_as_a_durable_one_while_it_is_there():
    found = demand(forced_durable=(Destination.topic("f.>"), Destination.queue("f.>")))
    [forced] = found.on_consumer_started(consumer(1, "topic://f.a")).begin
    assert forced.durable
    assert not found.on_consumer_started(consumer(2, "topic://plain")).begin[0].durable
    assert not found.on_consumer_started(consumer(3, "queue://f.a")).begin[0].durable
    assert found.durable_topics == {"f.a"}
    assert found.on_consumer_started(consumer(4, "topic://f.a", subscriptionName="s", clientId="x")) == NO_CHANGE
    assert found.on_consumer_stopped(gone(1)) == NO_CHANGE
    assert found.on_subscription_removed("x", "s").end == (forced,)


def test_what_is_kept_for_durable_subscribers_that_are_away_is_known_whether_it_is_consumed_or_not():
    asleep = consumer(1, "topic://t", subscriptionName="s", active=False)
    assert demand(dynamic_only=True, excluded=(Destination.topic("t"),)).durable_topics == set()
    for only in (False, True):
        found = demand(dynamic_only=only)
        found.on_consumer_started(asleep)
        assert found.durable_topics == {"t"}


Q, T = Destination.queue, Destination.topic


@pytest.mark.parametrize(
    ("included", "excluded", "wanted"),
    [
        ((Q("orders.eu.>"),), (), ["queue://orders.eu.>"]),
        ((Q("orders.*"), Q("bills.>")), (), ["queue://orders.*"]),
        ((Q("orders.eu"), Q("*.us"), T("orders.x")), (), ["queue://orders.eu", "queue://orders.us"]),
        ((Q("orders.eu.>"), Q("*.eu.*")), (), ["queue://orders.eu.>"]),
        ((Q(">"),), (), ["queue://orders.>"]),
        ((Q("bills.>"),), (), []),
        ((T(">"),), (), []),
        ((), (Q("orders.*"),), ["queue://orders.>"]),  # the source leaves those out
        ((), (Q("orders.>"),), []),
        ((Q("orders.eu.>"), Q("orders.us.>")), (Q("orders.us.>"),), ["queue://orders.eu.>"]),
    ],
)
def test_for_a_consumer_of_a_pattern_crosses_what_of_it_is_included_and_not_excluded(included, excluded, wanted):
    found = demand(dynamically_included=included, excluded=excluded)
    assert begun(found, consumer(1, "queue://orders.>")) == wanted
    assert [str(each.destination) for each in found.on_consumer_stopped(gone(1)).end] == wanted


def test_the_consumer_of_a_pattern_that_a_narrower_one_does_not_cover_is_served_in_full():
    found = demand()
    assert begun(found, consumer(1, "queue://orders.*"), consumer(2, "queue://orders.>")) == [
        "queue://orders.*",
        "queue://orders.>",
    ]
