"""Test admin-created destinations: created at all brokers, kept by each and by the master's record."""

import json
from io import StringIO

import pytest
from django.core.management import call_command

from brokerapp.cluster.status import MemberState
from brokerapp.errors import RequestRefused
from tests.waiting import wait_until


@pytest.mark.scenario("L01")
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_one_that_is_created_at_any_broker_is_there_on_all_before_anybody_uses_it(cluster, name, kind):
    cluster["X"].create(f"{kind}://{name}")
    cluster.everywhere(f"{kind}://{name}")
    assert all(each.stored(f"{kind}://{name}") for each in cluster)
    cluster["Y"].delete(f"{kind}://{name}")
    cluster.nowhere(f"{kind}://{name}")
    wait_until(lambda: not any(each.stored(f"{kind}://{name}") for each in cluster), "nothing left in the stores")


@pytest.mark.scenario("L10", "L11")
def test_the_same_name_is_created_once(cluster, name):
    cluster["X"].create(name)
    with pytest.raises(RequestRefused, match=f"queue://{name} exists already"):
        cluster["Y"].create(name)
    cluster["Y"].create(f"topic://{name}")
    cluster.everywhere(f"topic://{name}")


@pytest.mark.scenario("L09")
def test_one_that_holds_messages_at_several_brokers_is_deleted_everywhere_with_them(cluster, client_at, name):
    cluster["X"].create(name)
    wait_until(lambda: all(each.stored(name) for each in cluster), "it is everywhere")
    senders = {home: client_at(home) for home in "WY"}
    for home, sender in senders.items():
        sender.send(f"/queue/{name}", home, persistent="true")
    cluster["X"].delete(f"queue://{name}")
    wait_until(lambda: not any(each.stored(f"queue://{name}") for each in cluster), "it is nowhere")
    consumer = client_at("X")
    consumer.subscribe(f"/queue/{name}")
    cluster.serves("Y", "X", f"queue://{name}")
    senders["Y"].send(f"/queue/{name}", "anew", persistent="true")
    assert consumer.bodies() == ["anew"]


def test_operators_see_members_master_and_record(cluster, name):
    before = cluster["X"].status()
    cluster["W"].create(name)
    wait_until(lambda: cluster["X"].status().record_version == before.record_version + 1, "the next version")
    out = StringIO()
    call_command("brokerctl", "--data", str(cluster["X"].data), "--json", "cluster", stdout=out)
    told = json.loads(out.getvalue())
    assert {each["name"]: each["state"] for each in told["members"]} == {
        "W": MemberState.UP, "X": MemberState.SELF, "Y": MemberState.UP,
    }  # fmt: skip
    assert (told["master"], told["suspended"], told["may_change"]) == ("W", False, True)
    assert told["record_version"] == before.record_version + 1
