"""Test reading and writing of the plugins for redelivery and discarded dead letters."""

import pytest

from brokerapp.config import export_xml, import_definitions
from brokerapp.config.reader import parse_config
from brokerapp.errors import ConfigurationRefused
from brokerapp.model.definition_codec import from_json, to_json
from brokerapp.model.definitions import RedeliveryPolicy, RedeliverySettings
from brokerapp.model.destination import Destination
from brokerapp.model.settings import DiscardingSettings

queue, topic = Destination.queue, Destination.topic


def redelivery(entries, default="", attributes=""):
    inner = f"<redeliveryPolicyEntries>{entries}</redeliveryPolicyEntries>"
    inner += f"<defaultEntry>{default}</defaultEntry>" if default else ""
    inner = f"<redeliveryPolicyMap><redeliveryPolicyMap>{inner}</redeliveryPolicyMap></redeliveryPolicyMap>"
    return f"<broker><plugins><redeliveryPlugin {attributes}>{inner}</redeliveryPlugin></plugins></broker>"


def test_redelivery_policies_are_read_with_all_their_attributes():
    text = redelivery(
        '<redeliveryPolicy queue="A.>" maximumRedeliveries="4" initialRedeliveryDelay="5" redeliveryDelay="7" '
        'useExponentialBackOff="true" backOffMultiplier="1.5" maximumRedeliveryDelay="90" useCollisionAvoidance="true" '
        'collisionAvoidancePercent="20"/><redeliveryPolicy topic="T"/>',
        attributes='sendToDlqIfMaxRetriesExceeded="false" fallbackToDeadLetter="false"',
    )
    definitions, _ = import_definitions(text)
    policy = RedeliveryPolicy(queue("A.>"), 4, 5, 7, True, 1.5, 90, True, 20)
    assert definitions.redelivery == RedeliverySettings((policy, RedeliveryPolicy(topic("T"))), False, False)
    assert from_json(to_json(definitions)) == definitions
    assert import_definitions(export_xml(definitions))[0] == definitions


def test_a_default_entry_is_for_all_queues_and_topics_that_have_no_other():
    definitions, _ = import_definitions(
        redelivery(
            '<redeliveryPolicy queue=">" maximumRedeliveries="2"/>', '<redeliveryPolicy maximumRedeliveries="9"/>'
        )
    )
    found = {str(each.destination): each.maximum_redeliveries for each in definitions.redelivery.policies}
    assert found == {"queue://>": 2, "topic://>": 9}


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("<redeliveryPolicy/>", "queue or topic is required"),
        ("<policyEntry queue='a'/>", "only redeliveryPolicy"),
        ("<redeliveryPolicy queue='a' maximumRedeliveries='-2'/>", "maximumRedeliveries is -2, less than -1"),
        ("<redeliveryPolicy queue='a' redeliveryDelay='-1'/>", "redeliveryDelay is -1, less than 0"),
        ("<redeliveryPolicy queue='a' backOffMultiplier='much'/>", "must be a number"),
    ],
)
def test_a_wrong_redelivery_policy_is_refused_and_named(entry, said):
    with pytest.raises(ConfigurationRefused, match=said):
        import_definitions(redelivery(entry))


def read(plugin):
    return parse_config(f"<broker><plugins>{plugin}</plugins></broker>", {})


def test_the_discarding_plugin_is_read():
    config = read('<discardingDLQBrokerPlugin dropAll="false" dropOnly="MY.A.* MY.B" reportInterval="7"/>')
    assert config.discarding == DiscardingSettings(drop_all=False, drop_only=("MY.A.*", "MY.B"), report_interval=7)
    assert read("<discardingDLQBrokerPlugin/>").discarding == DiscardingSettings()


@pytest.mark.parametrize(
    ("plugin", "said"),
    [
        ('<discardingDLQBrokerPlugin dropOnly="a(b"/>', "is not a valid regular expression"),
    ],
)
def test_wrong_plugins_are_refused(plugin, said):
    with pytest.raises(ConfigurationRefused, match=said):
        read(plugin)
