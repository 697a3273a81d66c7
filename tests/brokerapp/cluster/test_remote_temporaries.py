"""Test temporary destinations of other brokers of the cluster, and their limit."""

import json
from types import SimpleNamespace

from brokerapp.cluster.peer import ENTRIES_AT_ONCE, ClusterPeer
from brokerapp.cluster.remote_temporaries import RemoteTemporaries
from brokerapp.engine.clients.temporary_owner import TemporaryOwner
from brokerapp.model.destination import Destination


def names(count):
    return [Destination.parse(f"temp-queue://ID:x-1:{number}") for number in range(count)]


def test_that_there_are_too_many_of_other_brokers_is_said_once(monkeypatch, caplog):
    monkeypatch.setattr("brokerapp.cluster.remote_temporaries.MAX_TEMPORARIES", 1)
    here = []
    lodging = RemoteTemporaries(temporaries=SimpleNamespace(host_remote=here.append), timers=None, peers=())
    first, second, third = names(3)
    for each in (first, second, third):
        lodging.on_added_remotely("x", each, SimpleNamespace(spec=TemporaryOwner))
    assert here == [first]
    assert [each.getMessage() for each in caplog.records] == [f"cluster: {second} of x is not known here: 1 are"]


def test_what_a_broker_has_is_told_in_parts_and_only_what_none_of_them_named_is_gone():
    here = set()
    lodging = RemoteTemporaries(
        temporaries=SimpleNamespace(host_remote=here.add, remove=here.discard), timers=None, peers=()
    )
    there, told = ClusterPeer(SimpleNamespace(name="x", broker="x", address="there")), []
    there.on_connected(SimpleNamespace(send=lambda _command, _headers, body: told.append(json.loads(body))))
    for left in (names(3 * ENTRIES_AT_ONCE), names(2 * ENTRIES_AT_ONCE + 1), []):
        there.send_entries("temporaries are", list(map(str, left)))
        for part in told:
            listed = dict.fromkeys(map(Destination.parse, part["entries"]))
            assert len(listed) <= ENTRIES_AT_ONCE
            lodging.on_list_part("x", listed, first=part["first"], last=part["last"])
        told.clear()
        assert here == set(left)
