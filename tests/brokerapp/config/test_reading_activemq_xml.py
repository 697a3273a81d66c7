"""Test which parts of an ActiveMQ configuration are read, reported and refused."""

import re
from pathlib import Path

import pytest
from lxml import etree

from brokerapp.config import (
    Authentication,
    ConfiguredGrant,
    ImportFinding,
    ImportOutcome,
    Plugin,
    SystemUsage,
    TransportConnector,
    User,
    default_config,
    import_definitions,
    read_config,
)
from brokerapp.config.reader import parse_config
from brokerapp.errors import ConfigurationRefused
from brokerapp.model.definitions import (
    DEFAULT_VIRTUAL_TOPIC,
    CompositeDestination,
    DeadLetterStrategy,
    Definitions,
    ForwardTarget,
    MirroredQueue,
    PolicyEntry,
    RecoveryPolicy,
    VirtualTopic,
)
from brokerapp.model.destination import Destination

DEBIAN = sorted(
    path
    for folder in ("/usr/share/doc/activemq/examples/conf", "/etc/activemq/instances-available/main")
    for path in Path(folder).glob("activemq*.xml")
)
queue, topic = Destination.queue, Destination.topic


def broker(inner="", attributes=""):
    return (
        '<beans xmlns="http://www.springframework.org/schema/beans">\n'
        f'<broker xmlns="http://activemq.apache.org/schema/core" brokerName="b" {attributes}>\n'
        f"{inner}\n</broker></beans>"
    )


def virtual(inner):
    return broker(
        "<destinationInterceptors><virtualDestinationInterceptor><virtualDestinations>\n"
        f"{inner}\n"
        "</virtualDestinations></virtualDestinationInterceptor></destinationInterceptors>"
    )


def policies(inner):
    return broker(
        f"<destinationPolicy><policyMap><policyEntries>{inner}</policyEntries></policyMap></destinationPolicy>"
    )


def composite(inner, attributes='name="A"'):
    return virtual(f"<compositeQueue {attributes}><forwardTo>{inner}</forwardTo></compositeQueue>")


def read(text, **properties):
    return parse_config(text, properties)


def declared(text):
    return read(text).definitions.virtual_destinations


def found(config, what):
    return [(each.line, each.element, each.why) for each in config.report if each.what is what]


# -- definitions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (broker(), (DEFAULT_VIRTUAL_TOPIC,)),
        (broker(attributes='useVirtualTopics="false"'), ()),
        (broker(attributes='useMirroredQueues="true"'), (DEFAULT_VIRTUAL_TOPIC, MirroredQueue())),
        (broker("<destinationInterceptors/>"), ()),
        (virtual("<virtualTopic/>"), (VirtualTopic(">"),)),
        (
            virtual(
                '<virtualTopic name="A.>" prefix="C.*." postfix=".Q" selectorAware="true" local="TRUE"'
                ' concurrentSend="true" transactedSend="true" dropOnResourceLimit="true"'
                ' setOriginalDestination="false"/>'
            ),
            (VirtualTopic("A.>", "C.*.", ".Q", True, True, True, True, True, False),),
        ),
        (virtual('<virtualTopic name="A.>,B.>"/>'), (VirtualTopic("A.>"), VirtualTopic("B.>"))),
        (
            composite('<queue physicalName="B"/><topic physicalName="C"/>'),
            (CompositeDestination(queue("A"), (ForwardTarget(queue("B")), ForwardTarget(topic("C")))),),
        ),
        (
            composite('<queue physicalName="B, topic://C"/>'),
            (CompositeDestination(queue("A"), (ForwardTarget(queue("B")), ForwardTarget(topic("C")))),),
        ),
        (
            composite(
                '<filteredDestination selector="n &gt; 5" queue="B"/><filteredDestination selector="a" topic="C"/>'
            ),
            (CompositeDestination(queue("A"), (ForwardTarget(queue("B"), "n > 5"), ForwardTarget(topic("C"), "a"))),),
        ),
        (
            composite('<filteredDestination selector="a" destination="topic://B"/>'),
            (CompositeDestination(queue("A"), (ForwardTarget(topic("B"), "a"),)),),
        ),
        (
            virtual(
                '<compositeTopic name="A" forwardOnly="false" sendWhenNotMatched="true" concurrentSend="true"'
                ' copyMessage="false"><forwardTo/></compositeTopic>'
            ),
            (CompositeDestination(topic("A"), (), False, True, True, False),),
        ),
        (composite("", 'id="x" name="A"'), (CompositeDestination(queue("A")),)),
        (
            composite("", 'name="A" xmlns:s="urn:sluice" s:strict="true"'),
            (CompositeDestination(queue("A"), strict=True),),
        ),
        (
            broker('<destinationInterceptors><mirroredQueue prefix="M." postfix=".C"/></destinationInterceptors>'),
            (MirroredQueue("M.", ".C"),),
        ),
    ],
)
def test_virtual_destinations(text, expected):
    assert declared(text) == expected


def test_several_interceptors_make_one_list():
    one, other = (
        f'<virtualDestinationInterceptor><virtualDestinations><virtualTopic name="{name}.>"/>'
        "</virtualDestinations></virtualDestinationInterceptor>"
        for name in "AB"
    )
    text = f"<destinationInterceptors>{one}{other}<mirroredQueue/></destinationInterceptors>"
    assert declared(broker(text)) == (VirtualTopic("A.>"), VirtualTopic("B.>"), MirroredQueue())


def test_a_section_of_its_own_replaces_the_built_in_topic_and_the_report_says_so():
    config = read(composite('<queue physicalName="B"/>'))
    assert DEFAULT_VIRTUAL_TOPIC not in config.definitions.virtual_destinations
    assert found(config, ImportOutcome.ADAPTED) == [
        (
            3,
            "destinationInterceptors",
            "replaces the built-in virtual topic VirtualTopic.>",
        )
    ]
    assert found(read(virtual('<virtualTopic name="VirtualTopic.>"/>')), ImportOutcome.ADAPTED) == []


def test_a_filtered_destination_without_selector_never_matches():
    config = read(composite('<filteredDestination queue="B"/><queue physicalName="C"/>'))
    assert config.definitions.virtual_destinations == (CompositeDestination(queue("A"), (ForwardTarget(queue("C")),)),)
    assert [(line, element) for line, element, _ in found(config, ImportOutcome.IGNORED)] == [
        (4, "filteredDestination")
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '<policyEntry queue="A.>" queuePrefetch="1" topicPrefetch="2" memoryLimit="20kb"'
            ' sendFailIfNoSpace="true"/>',
            PolicyEntry(queue("A.>"), None, 1, 2, 20480, True),
        ),
        ('<policyEntry topic="A" memoryLimit="5 mb"/>', PolicyEntry(topic("A"), memory_limit=5 << 20)),
        ('<policyEntry queue="A" memoryLimit="7"/>', PolicyEntry(queue("A"), memory_limit=7)),
        (
            '<policyEntry queue="A" lazyDispatch="true" useCache="false"/>',
            PolicyEntry(queue("A"), options=(("lazyDispatch", "true"), ("useCache", "false"))),
        ),
        (
            '<policyEntry queue="A" prioritizedMessages="true" strictOrderDispatch="true" useConsumerPriority="false"'
            ' consumersBeforeDispatchStarts="3" timeBeforeDispatchStarts="200" queueBrowserPrefetch="7"'
            ' messageGroupMapFactoryType="bucket?bucketCount=5" allConsumersExclusiveByDefault="true"/>',
            PolicyEntry(
                queue("A"), prioritized_messages=True, strict_order_dispatch=True, use_consumer_priority=False,
                consumers_before_dispatch_starts=3, time_before_dispatch_starts=200, queue_browser_prefetch=7,
                message_group_map_factory_type="bucket?bucketCount=5", all_consumers_exclusive_by_default=True,
            ),
        ),
        *(
            (
                '<policyEntry queue="A" messageGroupMapFactoryType="simple">'
                f"<messageGroupMapFactory>{factory}</messageGroupMapFactory></policyEntry>",
                PolicyEntry(queue("A"), message_group_map_factory_type=kind),
            )
            for factory, kind in (
                ('<messageGroupHashBucketFactory bucketCount="64" cacheSize="9"/>', "bucket?bucketCount=64"),
                ("<messageGroupHashBucketFactory/>", "bucket"),
                ('<cachedMessageGroupMapFactory cacheSize="7"/>', "cached?cacheSize=7"),
                ("<simpleMessageGroupMapFactory/>", "simple"),
                ('<bean class="our.own.Factory"/>', "simple"),
            )
        ),
        (
            '<policyEntry queue="A"><pendingQueuePolicy><vmQueueCursor/></pendingQueuePolicy></policyEntry>',
            PolicyEntry(queue("A"), queue_cursor="vmQueueCursor"),
        ),
        (
            '<policyEntry queue="A"><pendingQueuePolicy><bean class="C"/></pendingQueuePolicy></policyEntry>',
            PolicyEntry(queue("A"), options=(("pendingQueuePolicy", '<bean class="C"/>'),)),
        ),
        ('<policyEntry queue="A" storeLimit="1 kb"/>', PolicyEntry(queue("A"), store_limit=1024)),
        ('<policyEntry queue="A" forcePersistency="false"/>', PolicyEntry(queue("A"), force_persistency=False)),
        (
            '<policyEntry queue="A"><deadLetterStrategy><sharedDeadLetterStrategy processExpired="false">'
            '<deadLetterQueue><queue physicalName="D"/></deadLetterQueue></sharedDeadLetterStrategy>'
            "</deadLetterStrategy></policyEntry>",
            PolicyEntry(queue("A"), DeadLetterStrategy("shared", dead_letter_queue="D", process_expired=False)),
        ),
        (
            '<policyEntry queue="A"><deadLetterStrategy><sharedDeadLetterStrategy><deadLetterQueue>'
            '<topic physicalName="D"/></deadLetterQueue></sharedDeadLetterStrategy></deadLetterStrategy></policyEntry>',
            PolicyEntry(queue("A"), DeadLetterStrategy("shared", dead_letter_queue="topic://D")),
        ),
        (
            '<policyEntry queue="A"><deadLetterStrategy><individualDeadLetterStrategy queuePrefix="D." topicSuffix=".T"'
            ' useQueueForTopicMessages="false" processNonPersistent="true" expiration="5"/></deadLetterStrategy>'
            "</policyEntry>",
            PolicyEntry(
                queue("A"),
                DeadLetterStrategy(
                    "individual", queue_prefix="D.", topic_suffix=".T", use_queue_for_topic_messages=False,
                    process_non_persistent=True, expiration=5,
                ),
            ),
        ),
        (
            '<policyEntry queue="A"><deadLetterStrategy><discarding/></deadLetterStrategy></policyEntry>',
            PolicyEntry(queue("A"), DeadLetterStrategy("discarding")),
        ),
        (
            '<policyEntry topic="A" durableTopicPrefetch="7" alwaysRetroactive="true"><deadLetterStrategy>'
            '<individualDeadLetterStrategy destinationPerDurableSubscriber="true"/></deadLetterStrategy></policyEntry>',
            PolicyEntry(
                topic("A"), DeadLetterStrategy("individual", destination_per_durable_subscriber=True),
                durable_topic_prefetch=7, always_retroactive=True,
            ),
        ),
        *(
            (
                f'<policyEntry topic="A"><subscriptionRecoveryPolicy>{text}</subscriptionRecoveryPolicy></policyEntry>',
                PolicyEntry(topic("A"), recovery=expected),
            )
            for text, expected in (
                ("<noSubscriptionRecoveryPolicy/>", RecoveryPolicy("none")),
                ("<lastImageSubscriptionRecoveryPolicy/>", RecoveryPolicy("lastImage")),
                ('<fixedCountSubscriptionRecoveryPolicy maximumSize="3"/>', RecoveryPolicy("fixedCount", 3)),
                (
                    '<fixedSizedSubscriptionRecoveryPolicy maximumSize="9" useSharedBuffer="false"/>',
                    RecoveryPolicy("fixedSized", 9),
                ),
                (
                    '<timedSubscriptionRecoveryPolicy recoverDuration="5000"/>',
                    RecoveryPolicy("timed", recover_duration=5000),
                ),
                ("<retainedMessageSubscriptionRecoveryPolicy/>", None),
                (
                    "<retainedMessageSubscriptionRecoveryPolicy><wrapped><lastImageSubscriptionRecoveryPolicy/>"
                    "</wrapped></retainedMessageSubscriptionRecoveryPolicy>",
                    RecoveryPolicy("lastImage"),
                ),
                ('<queryBasedSubscriptionRecoveryPolicy query="#q"/>', None),
            )
        ),
    ],
)  # fmt: skip
def test_policies(text, expected):
    assert read(policies(text)).definitions.policies == (expected,)


def test_of_two_policies_for_one_destination_the_last_counts_and_the_report_says_so():
    config = read(policies('<policyEntry queue="A" queuePrefetch="1"/>\n<policyEntry queue="A" queuePrefetch="2"/>'))
    assert config.definitions.policies == (PolicyEntry(queue("A"), queue_prefetch=2),)
    assert [line for line, _, _ in found(config, ImportOutcome.ADAPTED)] == [4]


def test_the_default_entry_is_for_all_without_one_of_their_own():
    text = '<policyMap><defaultEntry><policyEntry queuePrefetch="7"/></defaultEntry></policyMap>'
    found = read(broker(f"<destinationPolicy>{text}</destinationPolicy>")).definitions.policies
    assert found == (PolicyEntry(queue(">"), queue_prefetch=7), PolicyEntry(topic(">"), queue_prefetch=7))


# -- the broker


def test_the_broker_itself():
    config = read(
        broker(
            '<destinations><queue physicalName="Q"/><topic physicalName="T"/></destinations>'
            '<systemUsage><systemUsage sendFailIfNoSpace="true"><memoryUsage><memoryUsage limit="20 mb"/></memoryUsage>'
            '<storeUsage><storeUsage limit="1 gb"/></storeUsage></systemUsage></systemUsage>'
            '<plugins><forcePersistencyModeBrokerPlugin persistenceFlag="true"/></plugins>',
            'persistent="false" schedulerSupport="true" advisorySupport="false" useVirtualDestSubs="true"'
            ' schedulePeriodForDestinationPurge="300"',
        )
    )
    assert (config.name, config.persistent, config.scheduler_support) == ("b", False, True)
    assert (config.advisory_support, config.use_virtual_dest_subs) == (False, True)
    assert config.schedule_period_for_destination_purge == 300
    assert config.destinations == (queue("Q"), topic("T"))
    assert config.system_usage == SystemUsage(memory=20 << 20, store=1 << 30, send_fail_if_no_space=True)
    assert config.plugins == (Plugin("forcePersistencyModeBrokerPlugin", (("persistenceFlag", "true"),)),)
    assert found(config, ImportOutcome.UNKNOWN) == []


@pytest.mark.parametrize(
    ("uri", "scheme", "host", "port", "options"),
    [
        ("stomp://0.0.0.0:61613", "stomp", "0.0.0.0", 61613, ()),
        ("stomp+nio://localhost:1?transport.closeAsync=false&amp;a=b", "stomp+nio", "localhost", 1,
         (("transport.closeAsync", "false"), ("a", "b"))),
        ("tcp://[::1]:5", "tcp", "::1", 5, ()),
        ("tcp://localhost", "tcp", "localhost", 0, ()),
        ("auto+nio+ssl://h:0", "auto+nio+ssl", "h", 0, ()),
    ],
)  # fmt: skip
def test_transport_connectors(uri, scheme, host, port, options):
    text = f'<transportConnectors><transportConnector name="c" uri="{uri}"/></transportConnectors>'
    assert read(broker(text)).connectors == (TransportConnector("c", scheme, host, port, options),)


def test_a_uri_is_put_together_again():
    for uri in ("stomp://0.0.0.0:61613?a=b&c=d", "tcp://[::1]:5"):
        text = f'<transportConnectors><transportConnector uri="{uri.replace("&", "&amp;")}"/></transportConnectors>'
        (connector,) = read(text).connectors
        assert connector.uri == connector.name == uri


def test_network_connectors():
    (connector,) = read(
        broker(
            '<networkConnectors><networkConnector uri="static:(tcp://h:9)" name="bridge" duplex="true" networkTTL="2">'
            '<dynamicallyIncludedDestinations><queue physicalName="in.>"/></dynamicallyIncludedDestinations>'
            '<excludedDestinations><topic physicalName="out"/></excludedDestinations>'
            '<staticallyIncludedDestinations><queue physicalName="always"/></staticallyIncludedDestinations>'
            "</networkConnector></networkConnectors>"
        )
    ).network_connectors
    assert (connector.name, connector.uri) == ("bridge", "static:(tcp://h:9)")
    assert connector.options == (("duplex", "true"), ("networkTTL", "2"))
    assert connector.dynamically_included == (queue("in.>"),)
    assert connector.excluded == (topic("out"),)
    assert connector.statically_included == (queue("always"),)


USERS = """<plugins><simpleAuthenticationPlugin anonymousAccessAllowed="true" anonymousGroup="guests"><users>
<authenticationUser username="alice" password="wonder" groups="users, admins"/>
<authenticationUser username="bob" password="${secret}" groups=""/>
</users></simpleAuthenticationPlugin></plugins>"""


def test_users():
    users = User("alice", "wonder", frozenset({"users", "admins"})), User("bob", "s3", frozenset())
    assert read(broker(USERS), secret="s3").authentication == Authentication(users, True, "anonymous", "guests")
    assert read(broker(USERS), secret="s3").users == users
    assert "wonder" not in repr(users)


def test_a_user_whose_password_is_not_known_has_none():
    config = read(broker(USERS))
    assert [each.password for each in config.users] == ["wonder", None]
    assert (5, "authenticationUser@password", "user bob cannot connect: its password is missing") in found(
        config, ImportOutcome.UNKNOWN
    )


def test_authorization():
    text = """<plugins><authorizationPlugin><map><authorizationMap><authorizationEntries>
      <authorizationEntry queue="USERS.>" read="users" write="users,guests" admin="admins"/>
      <authorizationEntry topic=">" read="users"/>
      </authorizationEntries><tempDestinationAuthorizationEntry>
      <tempDestinationAuthorizationEntry read="users" write="users" admin="users"/>
      </tempDestinationAuthorizationEntry></authorizationMap></map></authorizationPlugin></plugins>"""
    users, admins = frozenset({"users"}), frozenset({"admins"})
    assert read(broker(text)).authorization == (
        ConfiguredGrant(queue("USERS.>"), users, users | {"guests"}, admins),
        ConfiguredGrant(topic(">"), users),
        ConfiguredGrant(None, users, users, users),
    )


def test_no_plugin_means_no_restriction():
    assert (read(broker()).authentication, read(broker()).authorization) == (None, None)


@pytest.mark.parametrize("tag", ["jaasAuthenticationPlugin", "jaasCertificateAuthenticationPlugin"])
def test_authentication_that_is_not_known_lets_nobody_in(tag):
    config = read(broker(f'<plugins><{tag} configuration="activemq"/></plugins>'))
    assert config.authentication == Authentication()
    assert "no client can connect" in config.report[-1].why


def test_authorization_that_is_not_known_allows_nothing():
    text = "<plugins><authorizationPlugin><map><cachedLDAPAuthorizationMap/></map></authorizationPlugin></plugins>"
    assert read(broker(text)).authorization == ()


# -- the report


def test_nothing_is_dropped_silently():
    config = read(
        """<broker xmlns="http://activemq.apache.org/schema/core" brokerName="b" useJmx="true" colour="red">
  <persistenceAdapter><kahaDB directory="x"/></persistenceAdapter>
  <frobnicator/>
  <plugins><frobnicatingPlugin/></plugins>
  <destinationPolicy><policyMap><policyEntries>
    <policyEntry queue="A" frobnicate="true"><frobnication/></policyEntry>
  </policyEntries></policyMap></destinationPolicy>
  <transportConnectors><transportConnector name="s" uri="stomp://${host}:61613"/></transportConnectors>
</broker>"""
    )
    assert [(each.line, each.element, each.what.value) for each in config.report] == [
        (1, "broker@useJmx", "ignored"),
        (1, "broker@colour", "unknown"),
        (2, "persistenceAdapter", "ignored"),
        (3, "frobnicator", "unknown"),
        (4, "frobnicatingPlugin", "unknown"),
        (6, "policyEntry", "taken"),
        (6, "policyEntry@frobnicate", "unknown"),
        (6, "frobnication", "unknown"),
        (8, "transportConnector@uri", "unknown"),
        (8, "transportConnector", "ignored"),
    ]
    assert config.connectors == ()


@pytest.mark.parametrize(
    ("broker", "persistent"),
    [
        ("<broker/>", True),
        ('<broker persistent="false"/>', False),
        ("<broker><persistenceAdapter><kahaDB/></persistenceAdapter></broker>", True),
        ("<broker><persistenceAdapter><memoryPersistenceAdapter/></persistenceAdapter></broker>", False),
    ],
)
def test_a_broker_may_keep_nothing_from_start_to_start(broker, persistent):
    assert read(broker).persistent is persistent


def test_a_finding_reads_as_a_sentence():
    assert str(ImportFinding(7, "queue", ImportOutcome.IGNORED, "no use")) == "line 7: queue ignored: no use"


def test_placeholders_come_from_properties_then_the_environment_then_their_default(monkeypatch, tmp_path):
    monkeypatch.setenv("SLUICE_TEST_HOST", "from-environment")
    path = tmp_path / "a.xml"
    path.write_text(
        '<transportConnectors><transportConnector uri="stomp://${SLUICE_TEST_HOST}:${port:5}"/>'
        '<transportConnector uri="stomp://${sluice.test.host}:1"/></transportConnectors>'
    )
    assert [each.uri for each in read_config(path).connectors] == [
        "stomp://from-environment:5",
        "stomp://from-environment:1",
    ]
    assert [each.uri for each in read_config(path, {"SLUICE_TEST_HOST": "given", "port": "6"}).connectors] == [
        "stomp://given:6",
        "stomp://given:1",
    ]


# -- leniency


@pytest.mark.parametrize(
    ("text", "element"),
    [
        ('<broker name="b"/>', "broker@name"),
        ('<broker xmlns="http://activemq.org/config/1.0" brokerName="b"/>', "broker@xmlns"),
    ],
)
def test_slips_of_the_documentation_are_read_and_reported(text, element):
    config = read(text)
    assert config.name == "b"
    assert [(each.element, each.what) for each in config.report] == [(element, ImportOutcome.ADAPTED)]


@pytest.mark.parametrize(
    "text",
    [
        '<compositeQueue name="A"><forwardTo><queue physicalName="B"/></forwardTo></compositeQueue>',
        '<destinationInterceptors> <virtualDestinationInterceptor> <virtualDestinations> <compositeQueue name="A">'
        '<forwardTo><queue physicalName="B"/></forwardTo></compositeQueue> </virtualDestinations>'
        " </virtualDestinationInterceptor> </destinationInterceptors>",
        '<broker><destinationInterceptors><virtualDestinationInterceptor><virtualDestinations><compositeQueue name="A">'
        '<forwardTo><queue physicalName="B"/></forwardTo></compositeQueue></virtualDestinations>'
        "</virtualDestinationInterceptor></destinationInterceptors></broker>",
    ],
)
def test_fragments_are_read(text):
    definitions, report = import_definitions(text)
    assert definitions == Definitions(
        virtual_destinations=(CompositeDestination(queue("A"), (ForwardTarget(queue("B")),)),)
    )
    assert report


WHOLE = """<broker brokerName="b" persistent="false"><destinationInterceptors><virtualDestinationInterceptor>
<virtualDestinations><compositeQueue name="A"><forwardTo><queue physicalName="B"/></forwardTo></compositeQueue>
</virtualDestinations></virtualDestinationInterceptor></destinationInterceptors>
<plugins><redeliveryPlugin/><simpleAuthenticationPlugin><users><authenticationUser username="a" groups="g"/></users>
</simpleAuthenticationPlugin></plugins>
<transportConnectors><transportConnector name="s" uri="stomp://127.0.0.1:61613"/></transportConnectors></broker>"""


def test_an_import_says_taken_of_what_it_takes_and_of_nothing_else():
    report = import_definitions(WHOLE)[1]
    taken = {each.element for each in report if each.what in (ImportOutcome.TAKEN, ImportOutcome.ADAPTED)}
    assert taken == {"destinationInterceptors", "compositeQueue", "redeliveryPlugin"}
    ignored = {each.element: each.why for each in report if each.what is ImportOutcome.IGNORED}
    assert (
        "not imported: an import reads virtual destinations, policies and redelivery policies"
        in ignored["transportConnector"]
    )
    assert {"broker@persistent", "simpleAuthenticationPlugin"} <= set(ignored)
    assert not any("cannot connect" in each.why for each in report)
    assert {"transportConnector", "broker@persistent"} <= {
        each for _, each, _ in found(read(WHOLE), ImportOutcome.TAKEN)
    }


def test_an_import_says_of_each_part_what_truly_happens_to_it():
    text = """<broker brokerName="b" schedulerSupport="true"><destinationPolicy><policyMap><policyEntries>
    <policyEntry queue="A" memoryLimit="7"/></policyEntries></policyMap></destinationPolicy>
    <networkConnectors><networkConnector name="n" uri="static:(tcp://h:9)"/></networkConnectors>
    <transportConnectors><transportConnector name="a" uri="amqp://h:5672"/></transportConnectors></broker>"""
    why = {each.element: each.why for each in import_definitions(text)[1] if each.what is ImportOutcome.IGNORED}
    assert (
        why["transportConnector"] == "a at amqp://h:5672 is not served: amqp:// is not a transport of STOMP or OpenWire"
    )
    assert why["networkConnector"].endswith("to create one, use Topology, New connector")
    assert why["policyEntry@memoryLimit"].startswith("imported without effect")
    assert "a broker started with the file uses it" in why["broker@schedulerSupport"]


def test_an_import_tells_of_nobody_kept_out_and_of_all_that_is_not_understood_whatever_it_says():
    guard, odd = "<plugins><loginPlugin/></plugins>", 'odd="no client can connect"'
    what = {each.element: each.what for each in import_definitions(f'<broker brokerName="b" {odd}>{guard}</broker>')[1]}
    assert what == {"broker@odd": ImportOutcome.UNKNOWN, "loginPlugin": ImportOutcome.IGNORED}


def test_what_is_added_takes_the_place_of_nothing_and_brings_nothing_that_is_not_in_the_text():
    definitions, report = import_definitions(WHOLE, adds=True)
    assert definitions.virtual_destinations == (CompositeDestination(queue("A"), (ForwardTarget(queue("B")),)),)
    assert not any("replaces the built-in" in each.why for each in report)
    for text in ("<destinationPolicy/>", "<broker/>"):
        assert import_definitions(text)[0].virtual_destinations == (DEFAULT_VIRTUAL_TOPIC,)
        assert import_definitions(text, adds=True)[0].virtual_destinations == ()


def test_text_that_declares_an_encoding_can_be_imported():
    text = '<?xml version="1.0" encoding="ISO-8859-1"?><compositeQueue name="Größe"><forwardTo/></compositeQueue>'
    for each in (text, text.encode("latin-1")):
        assert import_definitions(each)[0].virtual_destinations == (CompositeDestination(queue("Größe")),)


@pytest.mark.skipif(not DEBIAN, reason="Debian's activemq is not installed")
@pytest.mark.parametrize("path", DEBIAN, ids=lambda path: path.name)
def test_the_samples_of_debian_load(path):
    config = read_config(path, {"activemq.data": "data"})
    assert config.connectors
    assert config.definitions.virtual_destinations == (DEFAULT_VIRTUAL_TOPIC,)


@pytest.mark.skipif(not DEBIAN, reason="Debian's activemq is not installed")
@pytest.mark.parametrize("path", DEBIAN, ids=lambda path: path.name)
def test_the_report_on_a_sample_speaks_of_everything_in_it(path):
    """Of each part of the broker, of each element beside it, or of something in it, in that line."""
    lines = {finding.line for finding in read_config(path).report}
    beans = etree.parse(path).getroot()
    [broker] = beans.findall("{http://activemq.apache.org/schema/core}broker")
    parts = [each for each in (*beans, *broker) if isinstance(each.tag, str) and each is not broker and len(each)]
    silent = [each.tag for each in parts if lines.isdisjoint(inner.sourceline for inner in each.iter())]
    assert parts
    assert silent == []


def test_without_a_file_there_is_one_stomp_connector():
    config = default_config("b", 4711)
    assert (config.name, [each.uri for each in config.connectors]) == ("b", ["stomp://127.0.0.1:4711"])
    assert config.definitions == Definitions()


# -- refusals


REFUSED = [
    ("", None, "invalid XML"),
    ("<broker>", 1, "invalid XML"),
    ("<html/>", 1, "not part of a broker"),
    ("<beans/>", 1, "<broker> is missing"),
    ("<beans><broker/><broker/></beans>", 1, "the first is in line 1"),
    ('<!DOCTYPE broker [<!ENTITY x "y">]><broker brokerName="&x;"/>', None, "entities"),
    (virtual('<virtualTopic name="A.>"/>\n<virtualTopic name="A.>" prefix="P.*."/>'), 5, "duplicate name 'A.>'"),
    (
        virtual(
            '<compositeQueue name="A"><forwardTo/></compositeQueue>\n'
            '<compositeTopic name="A"><forwardTo/></compositeTopic>'
        ),
        5,
        "duplicate name 'A': the first is in line 4",
    ),
    (
        broker("<destinationInterceptors><mirroredQueue/><mirroredQueue/></destinationInterceptors>"),
        3,
        "the mirroring of every queue is defined twice",
    ),
    (broker("<destinations/><destinations/>"), 3, "the first is in line 3"),
    (virtual('<compositeQueue name="A"/>'), 4, "no forwardTo"),
    (virtual("<compositeQueue><forwardTo/></compositeQueue>"), 4, "name is missing"),
    (composite('<queue physicalName=" "/>'), 4, "is not a list of destinations"),
    (composite("<queue/>"), 4, "name is missing"),
    (composite("<frob/>"), 4, "forwardTo may contain only"),
    (composite('<filteredDestination selector="a ="  queue="B"/>'), 4, "position 4"),
    (composite('<filteredDestination selector="a"/>'), 4, "exactly one of queue, topic and destination"),
    (composite('<filteredDestination selector="a" queue="B" topic="C"/>'), 4, "exactly one of queue"),
    (composite('<filteredDestination selector="a" queue="B" colour="red"/>'), 4, "unknown attribute 'colour'"),
    (composite("", 'name="A" forwardonly="false"'), 4, "unknown attribute 'forwardonly'"),
    (composite("", 'name="A" forwardOnly="maybe"'), 4, "must be true or false"),
    (virtual('<virtualTopic name="A" selectoraware="true"/>'), 4, "unknown attribute 'selectoraware'"),
    (virtual("<frob/>"), 4, "unknown virtual destination"),
    (broker('<destinationInterceptors><mirroredQueue x="y"/></destinationInterceptors>'), 3, "unknown attribute 'x'"),
    (policies("<policyEntry/>"), 3, "queue or topic is required"),
    (policies('<policyEntry queue="A" memoryLimit="much"/>'), 3, "must be a size"),
    (policies('<policyEntry queue="A" queuePrefetch="1.5"/>'), 3, "not a whole number"),
    (
        policies('<policyEntry queue="A"><deadLetterStrategy><frob/></deadLetterStrategy></policyEntry>'),
        3,
        "requires one of",
    ),
    (
        policies(
            '<policyEntry topic="A"><subscriptionRecoveryPolicy><fixedCountSubscriptionRecoveryPolicy maximumSize="0"/>'
            "</subscriptionRecoveryPolicy></policyEntry>"
        ),
        3,
        "maximumSize=0 is less than 1",
    ),
    (
        policies('<policyEntry topic="A"><subscriptionRecoveryPolicy/></policyEntry>'),
        3,
        "requires one of noSubscriptionRecoveryPolicy",
    ),
    (broker("<transportConnectors><transportConnector/></transportConnectors>"), 3, "uri is missing"),
    (broker('<transportConnectors><transportConnector uri="61613"/></transportConnectors>'), 3, "not a uri"),
    (broker('<transportConnectors><transportConnector uri="stomp://h:99999"/></transportConnectors>'), 3, "not a uri"),
    (broker(attributes='persistent="perhaps"'), 2, "must be true or false"),
]


@pytest.mark.parametrize(("text", "line", "rule"), REFUSED)
def test_what_cannot_be_used_is_refused_with_line_and_rule(text, line, rule):
    with pytest.raises(ConfigurationRefused, match=re.escape(rule)) as refused:
        read(text)
    if line is not None:
        assert f"line {line}:" in str(refused.value)


@pytest.mark.scenario("Q19")
@pytest.mark.parametrize(
    ("text", "size"),
    [("16", 16), ("16b", 16), ("16k", 16 << 10), ("16 kb", 16 << 10), ("16m", 16 << 20), ("1 GB", 1 << 30),
     ("-1", None), ("x", None), ("1.5 mb", None), ("16 tb", None)],
)  # fmt: skip
def test_a_size_is_a_number_of_bytes_with_or_without_a_unit(text, size):
    entry = f'<policyEntry topic="A" memoryLimit="{text}"/>'
    broker = f"<destinationPolicy><policyMap><policyEntries>{entry}</policyEntries></policyMap></destinationPolicy>"
    if size is not None:
        assert read(broker).definitions.policies[0].memory_limit == size
        return
    with pytest.raises(ConfigurationRefused, match=re.escape(f"memoryLimit={text!r} must be a size")):
        read(broker)


def test_a_loop_is_refused_by_its_name():
    text = (
        '<compositeQueue name="A"><forwardTo><queue physicalName="B"/></forwardTo></compositeQueue>'
        '<compositeQueue name="B"><forwardTo><filteredDestination selector="x" queue="A"/></forwardTo></compositeQueue>'
    )
    with pytest.raises(ConfigurationRefused, match="queue://A -> queue://B -> queue://A"):
        read(virtual(text))


def test_a_file_that_is_not_there_is_refused_by_its_name(tmp_path):
    with pytest.raises(ConfigurationRefused, match=r"nothing\.xml: No such file"):
        read_config(tmp_path / "nothing.xml")


def test_a_refusal_names_the_file(tmp_path):
    path = tmp_path / "broken.xml"
    path.write_text("<broker>\n<x></broker>")
    with pytest.raises(ConfigurationRefused, match=r"broken\.xml: line 2: invalid XML"):
        read_config(path)
