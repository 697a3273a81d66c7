"""Test how a configuration describes a cluster."""

import pytest

from brokerapp.cluster.settings import ClusterMember, ClusterSettings, differences, read_members, write_members
from brokerapp.config import BrokerConfig, export_config
from brokerapp.config.reader import parse_config
from brokerapp.errors import ConfigurationRefused
from brokerapp.network.options.address import BrokerAddress

MEMBERS = (ClusterMember("W", BrokerAddress("w", 61616)), ClusterMember("X", BrokerAddress("::1", 61613, tls=True)))
BROKER = '<broker xmlns="http://activemq.apache.org/schema/core" xmlns:sluice="urn:sluice" brokerName="{}" {}/>'


def broker(attributes, name="W"):
    return parse_config(BROKER.format(name, attributes), {})


def test_a_file_names_the_brokers_the_master_and_the_limits():
    config = broker(
        'sluice:clusterBrokers="W=tcp://w:61616, X=ssl://[::1]" sluice:clusterMaster="X" sluice:clusterUser="u"'
        ' sluice:clusterPassword="p" sluice:clusterRetry="200" sluice:autoDestroyAfter="300"'
        ' sluice:reconnectWindow="400"'
    )
    assert config.cluster == ClusterSettings(MEMBERS, "X", "u", "p", 200)
    assert (config.auto_destroy_after, config.reconnect_window) == (300, 400)
    assert {finding.what for finding in config.report} <= {"taken"}


def test_what_was_read_is_written_and_read_again():
    config = BrokerConfig(name="W", cluster=ClusterSettings(MEMBERS, "X", "u", "p", 200), auto_destroy_after=5)
    again = parse_config(export_config(config), {})
    assert (again.cluster, again.auto_destroy_after) == (config.cluster, 5)


def test_without_brokers_there_is_no_cluster_and_a_master_is_reported():
    config = broker('sluice:clusterMaster="W"')
    assert config.cluster is None
    assert [(each.element, each.what) for each in config.report if "Master" in each.element] == [
        ("broker@clusterMaster", "ignored")
    ]


@pytest.mark.parametrize(
    ("brokers", "master", "why"),
    [
        ("W", "", "'W' is not NAME=tcp://HOST:PORT"),
        ("W=http://w:1", "", "is not NAME=tcp://HOST:PORT"),
        ("W=tcp://w:99999", "", "is not NAME=tcp://HOST:PORT"),
        ("W=tcp://w:0", "", "is not NAME=tcp://HOST:PORT"),
        ("W=tcp://w:1,W=tcp://x:2", "", "names W twice"),
        ("X=tcp://x:1", "", "does not name this broker, W"),
        ("W=tcp://w:1", "Z", "clusterMaster=Z is not one of clusterBrokers"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused_by_name(brokers, master, why):
    with pytest.raises(ConfigurationRefused, match=why):
        broker(f'sluice:clusterBrokers="{brokers}" sluice:clusterMaster="{master}"')


def test_members_are_written_as_they_are_read():
    assert read_members(write_members(MEMBERS)) == MEMBERS


def test_what_brokers_were_told_differently_is_named():
    assert differences({"master": "W", "a": "1"}, {"master": "X", "a": "1", "b": "2"}) == [
        "b is '2' there and '' here",
        "master is 'X' there and 'W' here",
    ]
