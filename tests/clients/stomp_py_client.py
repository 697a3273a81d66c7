"""An application that uses stomp.py of any version, controlled by JSON; not a test itself."""

import json
import queue
import sys
import threading

import stomp
from stomp.adapter.ws import WSTransport
from stomp.connect import BaseConnection
from stomp.protocol import Protocol10, Protocol11, Protocol12

#: Over TLS a connection of stomp.py 8 now and then breaks in its first moment, never while it is being logged. Probably
#: because it reads and writes in two threads, which Python's TLS does not guard before 3.13; that is not proven.
ATTEMPTS = 4
PATIENCE = 20
PROTOCOLS = {"1.0": Protocol10, "1.1": Protocol11, "1.2": Protocol12}
CONNECTIONS = {"1.0": stomp.Connection10, "1.1": stomp.Connection11, "1.2": stomp.Connection12}


def over_websocket(version, address):
    """What stomp.WSStompConnection is for 1.2, for any version."""
    protocol = PROTOCOLS[version]

    class Connection(BaseConnection, protocol):
        def __init__(self):
            transport = WSTransport([address], reconnect_attempts_max=1)
            BaseConnection.__init__(self, transport)
            protocol.__init__(self, transport, *([] if version == "1.0" else [HEART_BEATS]))

        def connect(self, *args, **options):
            self.transport.start()
            protocol.connect(self, *args, **options)

        def disconnect(self, receipt=None, **options):
            protocol.disconnect(self, receipt, **options)

    return Connection()


HEART_BEATS = (2000, 2000)


class Listener(stomp.ConnectionListener):
    def __init__(self):
        self.messages, self.errors, self.heard = queue.Queue(), queue.Queue(), {}
        self.receipts = {}

    def on_connected(self, frame):
        self.heard = frame.headers

    def on_message(self, frame):
        self.messages.put(frame)

    def on_error(self, frame):
        self.errors.put(frame)

    def on_receipt(self, frame):
        self.receipt(frame.headers["receipt-id"]).set()

    def receipt(self, id):
        return self.receipts.setdefault(id, threading.Event())

    def wait(self, id):
        assert self.receipt(id).wait(PATIENCE), f"no receipt {id}"


def connected(scheme, version, address, ca, listener):
    """A connection that has logged in."""
    if scheme in ("ws", "wss"):
        connection = over_websocket(version, address)
    else:
        options = {} if version == "1.0" else {"heartbeats": HEART_BEATS}
        connection = CONNECTIONS[version]([address], reconnect_attempts_max=1, **options)
    if scheme in ("stomp+ssl", "wss"):
        connection.transport.set_ssl([address], ca_certs=ca)
    connection.set_listener("all", listener)
    connection.connect(wait=True)
    return connection


def main(task):
    scheme, version, name = task["scheme"], task["version"], task["name"]
    address = ("127.0.0.1", task["port"])
    for attempts_left in reversed(range(ATTEMPTS)):
        listener = Listener()
        try:
            connection = connected(scheme, version, address, task["ca"], listener)
            break
        except stomp.exception.ConnectFailedException:
            if not attempts_left:
                raise

    def settle(verb, message):
        if version == "1.0":
            getattr(connection, verb)(message.headers["message-id"])
        elif version == "1.1":
            getattr(connection, verb)(message.headers["message-id"], message.headers["subscription"])
        else:
            getattr(connection, verb)(message.headers["ack"])

    def take():
        return listener.messages.get(timeout=PATIENCE)

    told = {"stomp.py": stomp.__version__ if isinstance(stomp.__version__, str) else list(stomp.__version__)}
    told |= {"version": listener.heard.get("version"), "heart-beat": listener.heard.get("heart-beat")}

    queue_name, topic = f"/queue/{name}", f"/topic/{name}"
    connection.subscribe(queue_name, "q", "client-individual", receipt="subscribed")
    listener.wait("subscribed")
    header = "plain" if version == "1.0" else "a:b\nc\\d"
    connection.send(queue_name, "Grüße ☃", headers={"odd": header, "persistent": "true"}, receipt="stored")
    listener.wait("stored")
    message = take()
    told |= {"text": message.body, "header": message.headers["odd"], "destination": message.headers["destination"]}
    settle("ack", message)

    connection.begin("t1")
    connection.send(queue_name, "aborted", transaction="t1")
    connection.abort("t1")
    connection.begin("t2")
    connection.send(queue_name, "committed", transaction="t2", persistent="true")
    connection.commit("t2", receipt="committed")
    listener.wait("committed")
    message = take()
    told["transaction"] = message.body
    if version != "1.0":
        connection.subscribe("/queue/ActiveMQ.DLQ", "d", "auto", selector=f"name = '{name}'", receipt="dead")
        listener.wait("dead")
        settle("ack", message)
        connection.send(queue_name, "unwanted", headers={"name": name, "persistent": "true"})
        settle("nack", take())
        told["dead letter"] = take().body
    else:
        settle("ack", message)

    connection.subscribe(topic, "t", "auto", receipt="listening")
    listener.wait("listening")
    connection.send(topic, "x" * 300_000)
    told["large"] = len(take().body)
    connection.unsubscribe("t", receipt="unsubscribed")
    listener.wait("unsubscribed")
    connection.send(topic, "nobody hears this", receipt="sent")
    listener.wait("sent")
    told["after unsubscribing"] = listener.messages.qsize()

    connection.subscribe(queue_name, "bad", "auto", selector="a =")
    told["error"] = listener.errors.get(timeout=PATIENCE).headers["message"]
    connection.disconnect(receipt="bye")
    listener.wait("bye")
    return told


print(json.dumps(main(json.loads(sys.argv[1]))))  # noqa: T201 this is how it tells
