"""Temporary destinations of other brokers of the cluster, as many as there may be."""

from types import SimpleNamespace

from brokerapp.cluster.lodging import Lodging
from brokerapp.destination import Destination
from brokerapp.reconnecting import Belonging


def test_that_there_are_too_many_of_other_brokers_is_said_once(monkeypatch, caplog):
    monkeypatch.setattr("brokerapp.cluster.lodging.MAX_LODGERS", 1)
    here = []
    lodging = Lodging(SimpleNamespace(temporaries=SimpleNamespace(lodge=here.append)))
    names = [Destination.parse(f"temp-queue://ID:x-1:{number}") for number in range(3)]
    for each in names:
        lodging.came("x", each, SimpleNamespace(spec=Belonging))
    assert here == names[:1]
    assert [each.getMessage() for each in caplog.records] == [f"cluster: {names[1]} of x is not known here: 1 are"]
