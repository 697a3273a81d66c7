from brokerapp.model.stats_records import ConnectionStats, NodeStatus


def test_the_status_of_a_node_holds_what_it_was_given_and_copies_none_of_it():
    connections = [
        ConnectionStats(f"c{each}", "", "127.0.0.1:1", "ann", "1.2", 5, ["/queue/A"]).to_json() for each in range(2)
    ]
    told = NodeStatus("n", "b", 1, 2, connections=connections).to_json()
    assert told["connections"] is connections
    assert connections[1] == {
        "id": "c1", "client_id": "", "remote_address": "127.0.0.1:1", "user": "ann", "version": "1.2",
        "connected_ms": 5, "subscriptions": ["/queue/A"], "sent": 0, "delivered": 0, "slow": False, "discarded": 0,
        "blocked": False,
    }  # fmt: skip
    assert NodeStatus(**told).connections is connections
