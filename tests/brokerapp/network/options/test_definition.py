"""Test the JSON form of a network connector, without its secrets."""

import pytest

from brokerapp.errors import DefinitionRefused
from brokerapp.network.options.definition import NetworkConnector

OPTIONS = {"userName": "u", "password": "secret", "duplex": "true"}
FORMER = NetworkConnector("x", "tcp://b:1", options=tuple(OPTIONS.items()))


def changed(uri="tcp://b:1", **options):
    return NetworkConnector.from_json({"name": "x", "uri": uri, "options": {"userName": "u", **options}}, FORMER)


def test_a_secret_that_nobody_names_stays():
    assert dict(changed(password=None, duplex=False).options) == {**OPTIONS, "duplex": "false"}
    assert NetworkConnector.from_json(FORMER.to_json(), FORMER) == FORMER


@pytest.mark.parametrize("elsewhere", [{"uri": "tcp://elsewhere:1"}, {"userName": "v"}, {"userName": None}])
def test_a_secret_that_nobody_names_goes_to_no_other_broker_or_user(elsewhere):
    with pytest.raises(DefinitionRefused, match=r"password: .* enter it again"):
        changed(**elsewhere, password=None)
    assert changed(**elsewhere, password="new").option("password") == "new"
    assert changed(**elsewhere).option("password") is None


def test_the_rule_for_addresses_is_stored_and_stays_with_the_uri_but_is_not_shown():
    ruled = NetworkConnector("x", "tcp://b:1", outbound="10.0.0.0/8")
    assert "outbound" not in ruled.to_json()
    assert NetworkConnector.from_json(ruled.to_json(secrets=True)) == ruled
    assert NetworkConnector.from_json(ruled.to_json(), ruled) == ruled
    assert NetworkConnector.from_json({"name": "x", "uri": "tcp://c:1"}, ruled).outbound is None
    assert NetworkConnector.from_json({"name": "x", "uri": "tcp://b:1"}).outbound is None
