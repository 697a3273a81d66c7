"""Test that options without effect are reported with their line."""

from brokerapp.config import ImportOutcome
from brokerapp.config.reader import parse_config

XML = """<broker xmlns="http://activemq.apache.org/schema/core" persistent="false" advisorySupport="true">
<destinationPolicy><policyMap><policyEntries>
  <policyEntry queue="A.>" useCache="false" gcWithNetworkConsumers="true" queuePrefetch="5" optimizedDispatch="true"/>
  <policyEntry queue="B.>" memoryLimit="1mb"/>
  <policyEntry topic="C.>">
    <dispatchPolicy><strictOrderDispatchPolicy/></dispatchPolicy>
  </policyEntry>
</policyEntries></policyMap></destinationPolicy>
<networkConnectors>
  <networkConnector name="bridge" uri="multicast://default">
    <durableDestinations><topic physicalName="D"/></durableDestinations>
  </networkConnector>
</networkConnectors>
<plugins>
  <loggingBrokerPlugin logAll="true"/>
</plugins>
</broker>"""


def ignored(text):
    return [(each.line, each.element) for each in parse_config(text, {}).report if each.what is ImportOutcome.IGNORED]


def test_what_acts_is_not_mentioned():
    entry = '<policyMap><policyEntries><policyEntry queue="A" queuePrefetch="1"/></policyEntries></policyMap>'
    assert ignored(f'<broker persistent="true"><destinationPolicy>{entry}</destinationPolicy></broker>') == []


def test_what_has_no_effect_is_named_with_its_line():
    assert ignored(XML) == [
        (3, "policyEntry@gcWithNetworkConsumers"),
        (3, "policyEntry@optimizedDispatch"),
        (4, "policyEntry@memoryLimit"),
        (6, "dispatchPolicy"),
        (10, "networkConnector@durableDestinations"),
        (15, "loggingBrokerPlugin"),
    ]
