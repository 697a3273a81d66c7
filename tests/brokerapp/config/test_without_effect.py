from brokerapp.config import import_definitions
from brokerapp.config.broker_config import BrokerConfig, NetworkConnector, Plugin
from brokerapp.config.without_effect import without_effect

POLICIES = """<broker xmlns="http://activemq.apache.org/schema/core"><destinationPolicy><policyMap><policyEntries>
  <policyEntry queue="A.>" useCache="false" gcWithNetworkConsumers="true" memoryLimit="1mb"/>
  <policyEntry queue="B.>" memoryLimit="1mb" sendFailIfNoSpace="true" allConsumersExclusiveByDefault="true"/>
</policyEntries></policyMap></destinationPolicy></broker>"""


def test_what_acts_is_not_mentioned():
    assert list(without_effect(BrokerConfig())) == []


def test_policies_say_which_of_their_options_do_nothing():
    definitions, _ = import_definitions(POLICIES)
    assert list(without_effect(BrokerConfig(definitions=definitions))) == [
        "policyEntry queue://A.>: no effect yet: gcWithNetworkConsumers"
    ]


def test_the_memory_limit_of_a_topic_is_said_to_do_nothing():
    definitions, _ = import_definitions(POLICIES.replace('queue="B.>"', 'topic="B.>"'))
    [_, said] = without_effect(BrokerConfig(definitions=definitions))
    assert said.startswith("policyEntry topic://B.>: no effect yet: memoryLimit")


def test_networks_plugins_and_flags_are_named():
    config = BrokerConfig(
        network_connectors=(NetworkConnector("bridge", "static:(tcp://b:61616)"),),
        plugins=(Plugin("loggingBrokerPlugin"),),
        persistent=False,
    )
    said = "\n".join(without_effect(config))
    for word in ("bridge", "loggingBrokerPlugin", "persistent"):
        assert word in said
