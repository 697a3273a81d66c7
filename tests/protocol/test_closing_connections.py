"""Test closing of connections by operators."""

from brokerapp.admin.handlers.connection_reports import MAX_NAMED
from tests.protocol.clients import RawClient

BODY = "x" * 100_000


def test_what_a_client_that_reads_nothing_held_goes_to_others_when_its_connection_is_closed(connect, node, name):
    stuck, producer = RawClient(node.port), connect()
    stuck.tell("SUBSCRIBE", {"id": "s", "destination": f"/queue/{name}", "ack": "client", "receipt": "r"})
    stuck.hear()
    [peer] = [each for each in node.ask(lambda admin: admin.peers.all()) if each.consumers]
    held = node.look(lambda: node.node.broker.clients[peer.connection["id"]])
    sent = 0
    while not node.look(lambda: held.is_socket_full):
        producer.send(f"/queue/{name}", BODY)
        sent += 1
    node.ask(lambda admin: admin.peers.close(peer.connection["id"]))
    other = connect()
    other.subscribe(f"/queue/{name}")
    assert len(other.take(sent)) == sent
    stuck.close()


def test_a_client_with_many_subscriptions_is_told_of_in_brief_every_second_and_whole_when_somebody_asks(node, name):
    client, count = RawClient(node.port), 3 * MAX_NAMED
    for number in range(count):
        client.tell("SUBSCRIBE", {"id": str(number), "destination": f"/queue/{name}.{number}", "receipt": "r"})
        client.hear()
    [peer] = [each for each in node.ask(lambda admin: admin.peers.all()) if len(each.consumers) == count]
    assert len(peer.connection["subscriptions"]) == MAX_NAMED
    client.close()
