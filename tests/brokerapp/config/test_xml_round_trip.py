"""Test that a file with one of everything is written again as it was read, except what the report names."""

from pathlib import Path

from lxml import etree

from brokerapp.config import ImportOutcome, export_config
from brokerapp.config.reader import parse_config

TEXT = Path(__file__).with_name("everything.xml").read_text()
#: Elements and attributes that are written in another way.
OTHERWISE = {
    "broker@useVirtualTopics": "the section of virtual destinations says it",
    "broker@useMirroredQueues": "the section of virtual destinations says it",
    "sharedDeadLetterStrategy@deadLetterQueue": "an element of its own, which can name a topic, too",
    "messageGroupMapFactory": "the attribute messageGroupMapFactoryType",
    "cachedMessageGroupMapFactory": "the attribute messageGroupMapFactoryType",
    "cachedMessageGroupMapFactory@cacheSize": "the attribute messageGroupMapFactoryType",
    "wrapped": "in a policy that is reported as adapted",
    "defaultEntry": "an entry for all queues and one for all topics, which is reported",
    "managementContext@createConnector": "in a managementContext that is reported as without effect",
    "kahaDB": "in a persistenceAdapter that is reported as without effect",
    "kahaDB@directory": "in a persistenceAdapter that is reported as without effect",
}


def parts(text):
    """All elements, and all attributes, as the report names them."""
    found = set()
    for element in etree.fromstring(text.encode()).iter():
        tag = etree.QName(element).localname
        found |= {tag, *(f"{tag}@{etree.QName(name).localname}" for name in element.attrib)}
    return found


def test_what_is_read_is_written_or_reported():
    config = parse_config(TEXT, {})
    reported = {each.element for each in config.report if each.what is not ImportOutcome.TAKEN}
    lost = parts(TEXT) - parts(export_config(config)) - reported
    assert lost == set(OTHERWISE)


def test_nothing_in_it_is_unknown():
    assert [each for each in parse_config(TEXT, {}).report if each.what is ImportOutcome.UNKNOWN] == []
