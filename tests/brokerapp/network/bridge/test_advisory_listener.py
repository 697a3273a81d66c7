"""Test to which advisories a bridge subscribes, and how it reads them."""

from types import SimpleNamespace

import pytest

from brokerapp.model.destination import Destination
from brokerapp.network.bridge import advisory_listener
from brokerapp.network.bridge.advisory_listener import AdvisoryListener
from brokerapp.network.bridge.demand import Demand
from brokerapp.network.links.remote_consumers import AllConsumersTold, ConsumerStopped
from brokerapp.network.options.definition import NetworkConnector
from brokerapp.network.options.options import options_of

ALL = "ActiveMQ.Advisory.Consumer.>"
FOO, BAR = "ActiveMQ.Advisory.Consumer.Queue.include.test.foo", "ActiveMQ.Advisory.Consumer.Topic.include.test.bar"
INCLUDED = (Destination.queue("include.test.foo"), Destination.topic("include.test.bar"))
VIRTUAL = "ActiveMQ.Advisory.VirtualDestination.Consumer."


class Ends:
    """A bridge that hears of the consumers at its target."""

    def __init__(self, included=(), **options):
        self.followed, self.times_known, self.due = [], 0, []
        target = SimpleNamespace(
            remote="there", follow_consumers=self._follow,
            call_later=lambda seconds, call: self.due.append((seconds, call)),
        )  # fmt: skip
        connector = NetworkConnector(
            "near", "static:(tcp://127.0.0.1:1)", dynamically_included=included, options=tuple(options.items())
        )
        terms, _ = options_of(connector)
        demand = Demand(terms, "here", "there")
        AdvisoryListener("out", target, "out:", terms, demand, self.followed.append, self._known).start()

    def _follow(self, id, topics, told):
        assert id == "out:demand"
        self.topics, self.told = topics, told

    def _known(self):
        self.times_known += 1


@pytest.mark.parametrize(
    ("included", "options", "topics"),
    [
        ((), {}, [ALL]),
        (INCLUDED, {}, [FOO, BAR]),
        ((), {"destinationFilter": f"Queue.include.test.foo,{BAR}"}, [FOO, BAR]),
        (INCLUDED, {"destinationFilter": "NO_DESTINATION"}, ["ActiveMQ.Advisory.Consumer.NO_DESTINATION"]),
        ((), {"useVirtualDestSubs": "true"}, [ALL, f"{VIRTUAL}>"]),
        (INCLUDED[1:], {"useVirtualDestSubs": "true"}, [BAR, f"{VIRTUAL}Topic.include.test.bar"]),
    ],
)
@pytest.mark.scenario("NB-08")
def test_a_bridge_hears_of_the_consumers_it_cares_for_and_of_no_others(included, options, topics):
    assert Ends(included=included, **options).topics == topics


def test_that_all_consumers_are_known_counts_when_as_many_were_heard_of_as_were_told(caplog):
    ends = Ends()
    ends.told(AllConsumersTold(1))
    assert (ends.times_known, "reported more consumers" in caplog.text) == (0, True)
    ends.told(ConsumerStopped("c:-1:1"))
    ends.told(AllConsumersTold(1))
    assert ends.times_known == 1


def test_who_is_served_as_a_durable_subscriber_by_force_has_some_time_to_come_back():
    ends = Ends(included=(Destination.parse("topic://news?forceDurable=true"),))
    ends.told(AllConsumersTold(0))
    assert ends.times_known == 0
    [(seconds, call)] = ends.due
    call()
    assert (seconds, ends.times_known) == (advisory_listener.FORCED_DURABLE_GRACE_SECONDS, 1)
