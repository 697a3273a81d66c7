"""Writing: what is read back is what was written."""

from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerapp.config import TransportConnector, export_xml, import_definitions
from brokerapp.config.reader import parse_config
from brokerapp.definitions import (
    Composite,
    DeadLetterStrategy,
    Definitions,
    Leg,
    MirroredQueue,
    PolicyEntry,
    VirtualTopic,
)
from brokerapp.destination import NAMED_KINDS, Destination, Kind
from brokerapp.engine.loops import find_loop
from brokerapp.errors import DefinitionRefused
from brokerapp.strategies import MessageEviction, PendingMessageLimit, SlowConsumerStrategy

#: Any character a name may have: no blanks, nothing that separates, nothing XML cannot hold.
characters = st.characters(
    blacklist_categories=("Cs", "Cc", "Zs", "Zl", "Zp"), blacklist_characters=",.*>$/:?\ufffe\uffff"
)
elements = st.text(characters, min_size=1, max_size=4) | st.sampled_from(["orders", "*", 'qu"ote', "a&b", "<c"])
names = st.lists(elements, min_size=1, max_size=3).map(".".join)
affixes = st.sampled_from(["", "Consumer.*.", "*.", ".Q", "x y."])
destinations = st.builds(Destination, st.sampled_from(NAMED_KINDS), names)
temporary = st.sampled_from([Destination(Kind.TEMP_QUEUE, ">"), Destination(Kind.TEMP_TOPIC, ">")])
selectors = st.sampled_from(["region = 'eu' AND amount > 100", "a <> 'it''s' -- so\n OR b", "x LIKE '%<\"&>%'"])
flags = st.booleans()

virtual_topics = st.builds(
    VirtualTopic, names, affixes, affixes, flags, flags, flags, flags, flags, flags
)  # fmt: skip
legs = st.lists(st.builds(Leg, destinations, st.none() | selectors), max_size=3).map(tuple)
composites = st.builds(Composite, destinations, legs, flags, flags, flags, flags, flags)
mirrors = st.builds(MirroredQueue, affixes, affixes, flags, flags)

common = {
    "process_expired": flags,
    "process_non_persistent": flags,
    "enable_audit": flags,
    "expiration": st.integers(0, 9),
}
strategies = st.one_of(
    st.builds(DeadLetterStrategy, st.just("shared"), dead_letter_queue=names, **common),
    st.builds(
        DeadLetterStrategy, st.just("individual"), queue_prefix=affixes, topic_prefix=affixes, queue_suffix=affixes,
        topic_suffix=affixes, use_queue_for_queue_messages=flags, use_queue_for_topic_messages=flags,
        destination_per_durable_subscriber=flags, **common,
    ),
    st.builds(DeadLetterStrategy, st.just("discarding"), **common),
)  # fmt: skip
options = st.lists(
    st.sampled_from(
        [
            ("prioritizedMessages", "true"),
            ("maxPageSize", "200"),
            ("pendingQueuePolicy", "<vmQueueCursor/>"),
            ("subscriptionRecoveryPolicy", '<fixedCountSubscriptionRecoveryPolicy maximumSize="3"/>'),
        ]
    ),
    unique=True,
).map(lambda pairs: tuple(sorted(pairs, key=lambda pair: pair[1].startswith("<"))))  # elements come after attributes
#: Type of a field -> its values: whatever is one attribute of a policyEntry.
plain = {"bool": flags, "bool | None": st.none() | flags, "int | None": st.none() | st.integers(0, 1 << 40)}
decimals = st.integers(0, 40).map(lambda quarters: quarters / 4)
counts = st.integers(-1, 99_999)
limits = st.builds(PendingMessageLimit, st.just("constant"), counts) | st.builds(
    PendingMessageLimit, st.just("prefetchRate"), multiplier=decimals
)
evictions = st.builds(
    MessageEviction, st.sampled_from(["oldest", "lowestPriority"]), evict_expired_messages_high_watermark=counts
) | st.builds(MessageEviction, st.just("uniqueProperty"), st.sampled_from(["symbol", 'a"b']), counts)
slow_consumers = st.builds(
    SlowConsumerStrategy, st.just("abortSlowConsumer"), counts, counts, counts, flags, flags
) | st.builds(
    SlowConsumerStrategy, st.just("abortSlowAckConsumer"), counts, counts, counts, flags, flags, counts, flags
)
policies = st.builds(
    PolicyEntry,
    destinations | temporary,
    dead_letter=st.none() | strategies,
    pending_message_limit=st.none() | limits,
    message_eviction=st.none() | evictions,
    slow_consumer=st.none() | slow_consumers,
    options=options,
    **{each.name: plain[each.type] for each in fields(PolicyEntry) if each.type in plain},
)


def name_of(definition):
    return definition.destination.name if isinstance(definition, Composite) else getattr(definition, "name", None)


all_definitions = st.builds(
    Definitions,
    st.just(0),
    st.lists(virtual_topics | composites | mirrors, max_size=5, unique_by=name_of).map(tuple),
    st.lists(policies, max_size=3, unique_by=lambda each: each.destination).map(tuple),
).filter(lambda definitions: find_loop(definitions) is None)


@settings(max_examples=150, deadline=None)
@given(all_definitions)
def test_definitions_survive_the_way_out_and_in(definitions):
    text = export_xml(definitions, "b")
    assert import_definitions(text)[0] == definitions
    assert export_xml(import_definitions(text)[0], "b") == text


def test_a_file_has_the_name_and_the_connectors_of_the_broker():
    connectors = (TransportConnector("stomp", "stomp", "127.0.0.1", 5, (("a", "b"), ("c", "d"))),)
    config = parse_config(export_xml(Definitions(), "my broker", connectors), {})
    assert (config.name, config.connectors) == ("my broker", connectors)


def test_no_definitions_are_said_so_that_none_are_built_in():
    assert import_definitions(export_xml(Definitions(virtual_destinations=()), "b"))[0].virtual_destinations == ()


def test_what_the_format_cannot_say_is_refused():
    twice = Definitions(
        virtual_destinations=(Composite(Destination.queue("A")), Composite(Destination.topic("A"))),
    )
    with pytest.raises(DefinitionRefused, match="compositeQueue:A and compositeTopic:A"):
        export_xml(twice, "b")
    with pytest.raises(DefinitionRefused, match="XML cannot hold"):
        export_xml(Definitions(virtual_destinations=(VirtualTopic("a\x00b"),)), "b")
