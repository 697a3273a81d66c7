"""Test that written configurations are read back unchanged."""

from dataclasses import fields, replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from brokerapp.cluster.settings import ClusterSettings, read_members
from brokerapp.config import (
    Authentication,
    BrokerConfig,
    ConfiguredGrant,
    Plugin,
    SystemUsage,
    TransportConnector,
    User,
    export_config,
    export_xml,
    import_definitions,
)
from brokerapp.config.elements.broker_attributes import SAID_BY_SECTION, WRITTEN
from brokerapp.config.reader import parse_config
from brokerapp.engine.routing.cycle_detection import find_cycle
from brokerapp.errors import DefinitionRefused
from brokerapp.model.definitions import (
    CompositeDestination,
    DeadLetterStrategy,
    Definitions,
    ForwardTarget,
    MirroredQueue,
    PolicyEntry,
    RecoveryPolicy,
    RedeliveryPolicy,
    RedeliverySettings,
    VirtualTopic,
)
from brokerapp.model.destination import NAMED_KINDS, Destination, DestinationKind
from brokerapp.model.policy_strategies import (
    MessageEviction,
    NetworkBridgeFilter,
    PendingMessageLimit,
    SlowConsumerStrategy,
)
from brokerapp.model.settings import DiscardingSettings, SelectorCacheSettings, TimestampSettings
from brokerapp.model.transport_connector import KeyStore, TlsStores
from brokerapp.network.options.definition import NetworkConnector

#: Any character a name may have: no blanks, nothing that separates, nothing not valid in XML.
characters = st.characters(
    blacklist_categories=("Cs", "Cc", "Zs", "Zl", "Zp"), blacklist_characters=",.*>$/:?\ufffe\uffff"
)
elements = st.text(characters, min_size=1, max_size=4) | st.sampled_from(["orders", "*", 'qu"ote', "a&b", "<c"])
names = st.lists(elements, min_size=1, max_size=3).map(".".join)
affixes = st.sampled_from(["", "Consumer.*.", "*.", ".Q", "x y."])
destinations = st.builds(Destination, st.sampled_from(NAMED_KINDS), names)
temporary = st.sampled_from(
    [Destination(DestinationKind.TEMP_QUEUE, ">"), Destination(DestinationKind.TEMP_TOPIC, ">")]
)
selectors = st.sampled_from(["region = 'eu' AND amount > 100", "a <> 'it''s' -- so\n OR b", "x LIKE '%<\"&>%'"])
flags = st.booleans()

virtual_topics = st.builds(
    VirtualTopic, names, affixes, affixes, flags, flags, flags, flags, flags, flags
)  # fmt: skip
legs = st.lists(st.builds(ForwardTarget, destinations, st.none() | selectors), max_size=3).map(tuple)
composites = st.builds(CompositeDestination, destinations, legs, flags, flags, flags, flags, flags)
mirrors = st.builds(MirroredQueue, affixes, affixes, flags, flags)

common = {
    "process_expired": flags,
    "process_non_persistent": flags,
    "enable_audit": flags,
    "expiration": st.integers(0, 9),
}
dead_letter_targets = names | names.map("topic://{}".format)
strategies = st.one_of(
    st.builds(DeadLetterStrategy, st.just("shared"), dead_letter_queue=dead_letter_targets, **common),
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
            ("useCache", "true"),
            ("maxPageSize", "200"),
            ("pendingSubscriberPolicy", "<vmCursor/>"),
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
aborts = (counts, counts, counts, flags, flags)
slow_consumers = st.builds(SlowConsumerStrategy, st.just("abortSlowConsumer"), *aborts) | st.builds(
    SlowConsumerStrategy, st.just("abortSlowAckConsumer"), *aborts, counts, flags
)
bridge_filters = st.builds(NetworkBridgeFilter, st.just("conditional"), flags, flags, counts, counts, counts)
recoveries = st.one_of(
    st.builds(RecoveryPolicy, st.sampled_from(["none", "lastImage"])),
    st.builds(RecoveryPolicy, st.sampled_from(["fixedCount", "fixedSized"]), st.none() | st.integers(1, 9)),
    st.builds(RecoveryPolicy, st.just("timed"), recover_duration=st.none() | st.integers(1, 9)),
)
policies = st.builds(
    PolicyEntry,
    destinations | temporary,
    dead_letter=st.none() | strategies,
    pending_message_limit=st.none() | limits,
    message_eviction=st.none() | evictions,
    slow_consumer=st.none() | slow_consumers,
    network_bridge_filter=st.none() | bridge_filters,
    recovery=st.none() | recoveries,
    queue_cursor=st.none() | st.sampled_from(["vmQueueCursor", "storeCursor"]),
    options=options,
    **{each.name: plain[each.type] for each in fields(PolicyEntry) if each.type in plain}
    | {"record_one_in": st.none() | st.integers(0, 1_000_000)},
)


def name_of(definition):
    return (
        definition.destination.name
        if isinstance(definition, CompositeDestination)
        else getattr(definition, "name", None)
    )


redelivery = st.builds(
    RedeliverySettings,
    st.lists(
        st.builds(
            RedeliveryPolicy, destinations, st.integers(-1, 9), st.integers(0, 9), st.integers(0, 9), flags,
            st.sampled_from([1.0, 2.5, 5.0]), st.integers(-1, 9), flags, st.integers(0, 99),
        ),
        max_size=2, unique_by=lambda each: each.destination,
    ).map(tuple),
    flags, flags,
)  # fmt: skip
all_definitions = st.builds(
    Definitions,
    st.just(0),
    st.lists(virtual_topics | composites | mirrors, max_size=5, unique_by=name_of).map(tuple),
    st.lists(policies, max_size=3, unique_by=lambda each: each.destination).map(tuple),
    redelivery=redelivery,
).filter(lambda definitions: find_cycle(definitions) is None)


@settings(max_examples=40, deadline=None)
@given(all_definitions)
def test_definitions_survive_the_way_out_and_in(definitions):
    text = export_xml(definitions, "b")
    assert import_definitions(text)[0] == definitions
    assert export_xml(import_definitions(text)[0], "b") == text


texts = st.text(characters, min_size=1, max_size=5)
groups = st.frozensets(texts | st.just("*"), max_size=3)
users = st.builds(User, texts, texts | st.just(""), groups)
grants = st.builds(ConfiguredGrant, destinations, groups, groups, groups)
temporary_grants = st.builds(ConfiguredGrant, st.none(), groups, groups, groups)
bridged = st.lists(destinations, max_size=2, unique=True).map(tuple)
bridges = st.builds(
    NetworkConnector, texts, st.sampled_from(["static:(tcp://a:1,tcp://b:2)?x=1", "multicast://default"]),
    bridged, bridged, bridged, bridged, st.sampled_from([(), (("duplex", "true"), ("networkTTL", "3"))]),
)  # fmt: skip
authentications = st.builds(
    Authentication, st.lists(users, max_size=3, unique_by=lambda each: each.name).map(tuple), flags, texts, texts
)
authorizations = st.tuples(st.lists(grants, max_size=3), st.lists(temporary_grants, max_size=1)).map(
    lambda pair: (*pair[0], *pair[1])
)
usages = st.builds(
    SystemUsage, st.none() | st.integers(0, 9), st.none() | st.integers(0, 1 << 50), st.none() | st.integers(0, 9),
    flags, st.integers(0, 9),
)  # fmt: skip
#: Fields about plugins: those without effect, and those that act, which are kept with their attributes, too.
PLUGINS = (
    {"plugins": ()},
    {"plugins": (Plugin("statisticsBrokerPlugin"), Plugin("loggingBrokerPlugin", (("logAll", "true"),)))},
    {
        "plugins": (
            Plugin("timeStampingBrokerPlugin", (("ttlCeiling", "7"),)),
            Plugin("forcePersistencyModeBrokerPlugin", (("persistenceFlag", "true"),)),
            Plugin("destinationPathSeparatorPlugin", (("pathSeparator", "/"),)),
            Plugin("virtualSelectorCacheBrokerPlugin", (("persistInterval", "7"),)),
        ),
        "time_stamping": TimestampSettings(ttl_ceiling=7),
        "force_persistency": True,
        "path_separator": "/",
        "selector_cache": SelectorCacheSettings(persist_interval=7),
    },
)
stores = st.builds(KeyStore, texts.map("/etc/{}.p12".format), st.none() | texts)
key_stores = st.builds(KeyStore, texts.map("{}.pem".format), st.none() | texts, st.none() | texts)
tls = st.builds(TlsStores, st.none() | key_stores, st.none() | stores, st.none() | stores)
connectors = st.builds(
    TransportConnector, texts, st.sampled_from(["stomp", "wss", "amqp"]), st.sampled_from(["127.0.0.1", "::1", "h"]),
    st.integers(0, 65_535), st.sampled_from([(), (("maximumConnections", "3"),)]),
    st.sampled_from([(), (("allowLinkStealing", "true"),)]),
)  # fmt: skip
MEMBERS = read_members("a=tcp://h:1,b=ssl://h:2")
clusters = st.builds(
    ClusterSettings,
    st.just(MEMBERS),
    st.sampled_from(["", "a"]),
    st.none() | texts,
    st.none() | texts,
    st.integers(1, 9),
)
discarding = st.builds(
    DiscardingSettings, flags, flags, flags, st.sampled_from([(), ("A.*", "B")]), report_interval=st.integers(0, 9)
)


def with_what_redelivery_needs(config):
    """ActiveMQ's redelivery plugin needs its scheduler, so the file asks for it."""
    needs = config.definitions.redelivery != RedeliverySettings()
    return replace(config, scheduler_support=config.scheduler_support or needs)


#: Field of a configuration -> its values, but for those about plugins.
FIELDS = {
    **{each.name: plain.get(each.type, st.integers(0, 9)) for each in fields(BrokerConfig) if each.name in WRITTEN},
    "name": texts,
    "definitions": all_definitions,
    "destinations": bridged,
    "network_connectors": st.lists(bridges, max_size=2, unique_by=lambda each: each.name).map(tuple),
    "authentication": st.none() | authentications,
    "authorization": st.none() | authorizations,
    "discarding": st.none() | discarding,
    "system_usage": usages,
    "tls": tls,
    "connectors": st.lists(connectors, max_size=2, unique_by=lambda each: each.name).map(tuple),
}
configs = st.builds(
    lambda fields, plugins: with_what_redelivery_needs(BrokerConfig(**fields, **plugins)),
    st.fixed_dictionaries(FIELDS),
    st.sampled_from(PLUGINS),
)
#: A broker is in a cluster by its name.
in_clusters = st.builds(lambda config, cluster: replace(config, name="a", cluster=cluster), configs, clusters)


def as_read(text):
    """What a file says, without the report on it and without what the section of virtual destinations says, too."""
    config = parse_config(text, {})
    return replace(config, report=(), use_temp_mirrored_queues=BrokerConfig().use_temp_mirrored_queues)


@settings(max_examples=40, deadline=None)
@given(configs | in_clusters)
def test_a_whole_configuration_survives_the_way_out_and_in(config):
    names = [each.name for each in (*config.network_connectors, *config.connectors)]
    names += map(name_of, config.definitions.virtual_destinations)
    assume(len(set(names)) == len(names))  # names are unique in a file
    text = export_config(config)
    assert as_read(text) == config
    assert export_config(as_read(text)) == text


def test_every_field_of_a_configuration_is_tried():
    """So that none can be read and not be written."""
    about_plugins = {name for fields in PLUGINS for name in fields}
    tried = {*FIELDS, *about_plugins, "cluster"}
    assert {each.name for each in fields(BrokerConfig)} - tried == {"report", *SAID_BY_SECTION}


def test_who_cannot_connect_is_not_written():
    authentication = Authentication((User("a", None), User("b", "")))
    text = export_config(BrokerConfig(authentication=authentication))
    assert as_read(text).authentication == Authentication((User("b", ""),))


def test_a_file_has_the_name_and_the_connectors_of_the_broker():
    connectors = (TransportConnector("stomp", "stomp", "127.0.0.1", 5, (("a", "b"), ("c", "d"))),)
    config = parse_config(export_xml(Definitions(), "my broker", connectors), {})
    assert (config.name, config.connectors) == ("my broker", connectors)


def test_no_definitions_are_said_so_that_none_are_built_in():
    assert import_definitions(export_xml(Definitions(virtual_destinations=()), "b"))[0].virtual_destinations == ()


def test_what_the_format_cannot_say_is_refused():
    twice = Definitions(
        virtual_destinations=(
            CompositeDestination(Destination.queue("A")),
            CompositeDestination(Destination.topic("A")),
        ),
    )
    with pytest.raises(DefinitionRefused, match="the composite queue A and the composite topic A"):
        export_xml(twice, "b")
    with pytest.raises(DefinitionRefused, match="not valid in XML"):
        export_xml(Definitions(virtual_destinations=(VirtualTopic("a\x00b"),)), "b")
