"""Record the shapes of Jolokia's responses of ActiveMQ 5.17.2 in recorded.json beside this file.

Needs Java and Debian's packages activemq, libxstream-java, libjettison-java and libjolokia-core-java (Jolokia 1.7.1, as
ActiveMQ's own web console has it). Run from the root of the project: python -m tests.monitoring.golden.record
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import stomp

from tests.monitoring.shapes import general, shape

HERE = Path(__file__).resolve().parent
RECORDED = HERE / "recorded.json"
#: Where Debian puts jars.
JARS = Path(os.environ.get("JARS", "/usr/share/java"))
NEEDED = (
    *(
        f"activemq-{part}"
        for part in ("broker", "client", "jaas", "kahadb-store", "openwire-legacy", "protobuf", "stomp")
    ),
    *("geronimo-j2ee-management-1.1-spec", "geronimo-jms_1.1_spec", "hawtbuf", "slf4j-api", "slf4j-simple"),
    *("jackson-annotations", "jackson-core", "jackson-databind", "xstream", "jettison", "xpp3"),
    *("jolokia-core", "json-simple"),
)
BROKER = "org.apache.activemq:type=Broker,brokerName=localhost"
QUEUE = f"{BROKER},destinationType=Queue,destinationName=Orders.In"
TOPIC = f"{BROKER},destinationType=Topic,destinationName=Prices"
#: What monitors ask, by path or as an object.
REQUESTS: list[Any] = [
    {"type": "version"},
    {"type": "read", "mbean": BROKER, "attribute": "BrokerName"},
    {"type": "read", "mbean": BROKER},
    {"type": "read", "mbean": QUEUE},
    {"type": "read", "mbean": TOPIC},
    {"type": "read", "mbean": QUEUE, "attribute": ["QueueSize", "ConsumerCount"]},
    {"type": "read", "mbean": QUEUE.replace("localhost", "*").replace("Orders.In", "*"), "attribute": "QueueSize"},
    {
        "type": "read",
        "mbean": QUEUE.replace("localhost", "*").replace("Orders.In", "*"),
        "attribute": ["QueueSize", "Nonsense"],
    },
    {"type": "read", "mbean": f"{BROKER},destinationType=Queue,endpoint=Consumer,*"},
    {"type": "read", "mbean": f"{TOPIC},endpoint=Consumer,clientId=plain,*"},
    {"type": "read", "mbean": f"{TOPIC},endpoint=Consumer,clientId=c1,consumerId=Durable(c1_s1)"},
    {"type": "read", "mbean": f"{TOPIC},endpoint=Consumer,clientId=c2,consumerId=Durable(c2_s2)"},
    {"type": "read", "mbean": f"{BROKER},endpoint=dynamicProducer,clientId=shop,*"},
    {"type": "read", "mbean": f"{BROKER},connector=clientConnectors,connectorName=stomp"},
    {
        "type": "read",
        "mbean": f"{BROKER},connector=clientConnectors,connectorName=stomp,connectionViewType=clientId,"
        "connectionName=watcher",
    },
    {"type": "read", "mbean": f"{BROKER},service=Health", "attribute": "CurrentStatus"},
    {"type": "read", "mbean": BROKER, "attribute": "TransportConnectors", "path": "stomp"},
    {"type": "read", "mbean": QUEUE.replace("Orders.In", "Nowhere")},
    {"type": "read", "mbean": BROKER, "attribute": "Nonsense"},
    {"type": "search", "mbean": f"{BROKER},endpoint=*,*"},
    {"type": "search", "mbean": f"{BROKER},destinationType=Queue,*"},
    {"type": "search", "mbean": "org.apache.activemq:type=Nonsense,*"},
    {"type": "exec", "mbean": QUEUE, "operation": "browse()"},
    {"type": "exec", "mbean": f"{BROKER},service=Health", "operation": "healthStatus"},
    {"type": "exec", "mbean": QUEUE, "operation": "nonsense"},
    [{"type": "read", "mbean": BROKER, "attribute": "BrokerVersion"}, {"type": "read", "mbean": "java.lang:type=None"}],
    f"/read/{QUEUE}/QueueSize,ConsumerCount",
    f"/read/{QUEUE.replace('.In', '!.In')}/Name",
]


def document(answer: Any) -> Any:
    """What is kept of an answer: its shape, with its status, the kind of its error and what a search found."""
    if isinstance(answer, list):
        return list(map(document, answer))
    said = {name: answer[name] for name in ("status", "error_type") if name in answer}
    if answer["request"]["type"] == "search":
        said["found"] = sorted({general(each) for each in answer["value"]})
    return said | {"shape": shape({name: each for name, each in answer.items() if name != "request"})}


def attribute_types(described: dict[str, Any]) -> dict[str, str]:
    """Java's type of each attribute, from what `list` says of a bean."""
    return {name: each["type"] for name, each in sorted(described["attr"].items())}


def make_traffic(port: int, login: str, passcode: str, pause: Callable[[], Any]) -> list[stomp.Connection12]:
    """A consumer of a queue, a producer, a plain subscriber of a topic, and two durable ones, of whom one has gone.

    `pause` returns when the broker has dealt with what it was sent.
    """

    def client(name: str) -> stomp.Connection12:
        made = stomp.Connection12([("127.0.0.1", port)], auto_content_length=False)  # so that bodies are texts
        made.connect(login, passcode, wait=True, headers={"client-id": name})
        return made

    watcher, shop, here, gone, plain = map(client, ("watcher", "shop", "c1", "c2", "plain"))
    watcher.subscribe("/queue/Orders.In", "1", "client-individual", {"activemq.prefetchSize": "1", "selector": "n > 1"})
    here.subscribe("/topic/Prices", "s1", headers={"activemq.subscriptionName": "s1", "selector": "n > 1"})
    gone.subscribe("/topic/Prices", "s2", headers={"activemq.subscriptionName": "s2"})
    plain.subscribe("/topic/Prices", "p")
    pause()
    gone.disconnect()
    for _ in range(2):
        shop.send("/queue/Orders.In", "one", headers={"persistent": "true", "n": "5"})
    shop.send("/topic/Prices", "x", headers={"n": "3"})
    pause()
    return [watcher, shop, here, plain]


def main() -> None:
    """Start it, ask, write."""

    def free() -> int:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            return one.getsockname()[1]

    ports, jars = (free(), free()), ":".join(str(JARS / f"{each}.jar") for each in NEEDED)

    def ask(request: Any) -> Any:
        by_path = isinstance(request, str)
        data = None if by_path else json.dumps(request).encode()
        asked = urllib.request.Request(f"http://127.0.0.1:{ports[1]}{request if by_path else '/'}", data)
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return json.load(answer)

    with tempfile.TemporaryDirectory() as data:
        command = ["java", "-cp", jars, str(HERE / "Recorded.java"), *map(str, ports), data]
        broker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert broker.stdout.readline().strip() == "ready"
            clients = make_traffic(ports[0], "admin", "admin", lambda: time.sleep(1))
            described = ask({"type": "list"})["value"]["org.apache.activemq"]
            kinds = {
                "broker": "brokerName=localhost,type=Broker",
                "queue": "destinationName=Orders.In,destinationType=Queue,type=Broker",
                "topic": "destinationName=Prices,destinationType=Topic,type=Broker",
                "consumer": "clientId=watcher,consumerId",
                "topic-consumer": "clientId=plain,consumerId",
                "durable": "consumerId=Durable(c1_s1)",
                "producer": "endpoint=dynamicProducer",
                "connection": "connectionName=watcher",
                "connector": "brokerName=localhost,connector=clientConnectors,connectorName=stomp,type=Broker",
            }
            types = {
                kind: attribute_types(next(each for name, each in described.items() if part in name))
                for kind, part in kinds.items()
            }
            answers = [{"request": each, "answer": document(ask(each))} for each in REQUESTS]
            RECORDED.write_text(json.dumps({"types": types, "answers": answers}, indent=1) + "\n")
            for each in clients:
                each.disconnect()
        finally:
            broker.kill()
            broker.wait()


if __name__ == "__main__":
    main()
