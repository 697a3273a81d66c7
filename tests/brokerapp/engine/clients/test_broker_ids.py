"""Test the ids by which other brokers are known in OpenWire."""

from brokerapp.engine.clients import broker_ids
from brokerapp.engine.clients.broker_ids import BrokerIds


def test_a_broker_is_known_by_each_id_that_it_had_and_is_called_by_the_last_one():
    ids = BrokerIds()
    ids.learn("ID:1", "classic")
    ids.learn("ID:2", "classic")
    assert ids.names_of(["ID:1", "other", "ID:2"]) == ("classic", "other", "classic")
    assert ids.ids_of(("classic", "other")) == ("ID:2", "other")


def test_a_broker_that_changes_its_name_is_known_by_the_last_one_alone():
    ids = BrokerIds()
    for number in range(3):
        ids.learn("ID:1", f"name {number}")
    assert ids.names_of(["ID:1"]) == ("name 2",)
    assert ids.ids_of([f"name {number}" for number in range(3)]) == ("name 0", "name 1", "ID:1")


def test_the_brokers_that_were_heard_of_least_recently_are_forgotten(monkeypatch):
    monkeypatch.setattr(broker_ids, "MAX_KNOWN", 2)
    ids = BrokerIds()
    for number in (1, 2, 1, 3):
        ids.learn(f"ID:{number}", f"broker {number}")
    assert ids.names_of(["ID:1", "ID:2", "ID:3"]) == ("broker 1", "ID:2", "broker 3")
    assert ids.ids_of(("broker 1", "broker 2")) == ("ID:1", "broker 2")
