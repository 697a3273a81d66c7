"""Test how the broker sets timestamp and expiration of a message."""

import pytest

from brokerapp.config.reader import parse_config
from brokerapp.engine.policy.time_stamping import apply_timestamps
from brokerapp.model.settings import TimestampSettings

NOW = 1_000_000


@pytest.mark.scenario("SC-11")
@pytest.mark.parametrize(
    ("rules", "timestamp", "expires", "expected"),
    [
        ({}, None, 0, (NOW, 0)),
        ({}, 5, 0, (NOW, 0)),
        ({}, 500, 800, (NOW, NOW + 300)),
        ({}, None, NOW + 300, (NOW, NOW + 300)),
        ({}, NOW + 9000, NOW + 9300, (NOW, NOW + 300)),
        ({}, 800, 500, (NOW, 500)),
        ({"zero_expiration_override": 60}, 5, 0, (NOW, NOW + 60)),
        ({"zero_expiration_override": 60}, None, NOW + 300, (NOW, NOW + 300)),
        ({"ttl_ceiling": 100}, None, NOW + 300, (NOW, NOW + 100)),
        ({"ttl_ceiling": 100}, None, NOW + 50, (NOW, NOW + 50)),
        ({"ttl_ceiling": 100}, None, 0, (NOW, 0)),
        ({"ttl_ceiling": 100, "zero_expiration_override": 500}, None, 0, (NOW, NOW + 100)),
        ({"future_only": True}, NOW + 9000, NOW + 9300, (NOW + 9000, NOW + 9300)),
        ({"future_only": True}, 500, 800, (NOW, NOW + 300)),
    ],
)
def test_the_broker_s_clock_counts(rules, timestamp, expires, expected):
    assert apply_timestamps(TimestampSettings(**rules), timestamp, expires, NOW) == expected


def test_the_plugin_is_read_and_kept():
    options = 'ttlCeiling="60000" zeroExpirationOverride="30000" futureOnly="true"'
    text = f"<plugins><timeStampingBrokerPlugin {options}/></plugins>"
    config = parse_config(f"<broker>{text}</broker>", {})
    assert config.time_stamping == TimestampSettings(30_000, 60_000, True)
    [plugin] = config.plugins
    assert dict(plugin.options) == {"ttlCeiling": "60000", "zeroExpirationOverride": "30000", "futureOnly": "true"}


@pytest.mark.parametrize(("attribute", "forced"), [('persistenceFlag="true"', True), ("", False)])
def test_what_the_persistency_plugin_forces_is_read_and_kept(attribute, forced):
    text = f"<plugins><forcePersistencyModeBrokerPlugin {attribute}/></plugins>"
    config = parse_config(f"<broker>{text}</broker>", {})
    assert config.force_persistency is forced
    assert [plugin.name for plugin in config.plugins] == ["forcePersistencyModeBrokerPlugin"]


def test_the_options_of_the_selector_cache_are_read_and_kept():
    text = '<plugins><virtualSelectorCacheBrokerPlugin ignoreWildcardSelectors="true"/></plugins>'
    config = parse_config(f"<broker>{text}</broker>", {})
    assert config.selector_cache.ignore_wildcard_selectors
    [plugin] = config.plugins
    assert dict(plugin.options) == {"ignoreWildcardSelectors": "true"}
