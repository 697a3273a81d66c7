"""Generate random but reproducible traffic: a queue, and a virtual topic with two consumer queues."""

import random
from pathlib import Path

from recorded_traffic import BROKER, message

from analytics.archive.broker_archive import ArchiveCommit, BrokerArchive
from analytics.requests.request import TimeWindow
from brokerapp.tracing.decoding import decode
from brokerapp.tracing.recorder import TraceRecorder
from brokerapp.tracing.schema import ACK, DISPATCH, FORWARD

START_US = 1_760_000_400_000_000 // 3_600_000_000 * 3_600_000_000
SPAN_US = 3 * 3_600_000_000
WINDOW = TimeWindow(START_US + 600_000_000, START_US + SPAN_US - 600_000_000)
TOPIC = "topic://VirtualTopic.Orders"
CONSUMER_QUEUES = ["queue://Consumer.Billing.VirtualTopic.Orders", "queue://Consumer.Shipping.VirtualTopic.Orders"]
QUEUES = ["queue://a", "queue://b"]


def write(folder: Path, messages: int, seed: int = 7, broker: str = BROKER) -> int:
    """Fill the archive; how many events there are."""
    rng, events = random.Random(seed), 0
    archive, recorder = BrokerArchive(folder, broker), TraceRecorder(broker)
    for number in range(messages):
        born = START_US + rng.randrange(SPAN_US)
        made = message(number, born, size=rng.randrange(2000), region=rng.choice(["eu", "us"]), n=str(number))
        original = rng.choice([TOPIC, *QUEUES])
        legs = CONSUMER_QUEUES if original == TOPIC else [original]
        recorder.record_enqueue(born, [made], original)
        recorder.record(FORWARD, born, [made], legs, original)
        for leg in legs:
            taken = born + int(rng.lognormvariate(8, 2)) + 1
            recorder.record_one(DISPATCH, taken - 1, made, leg, original, "c1", None)
            if rng.random() < 0.9:
                recorder.record_one(ACK, taken, made, leg, original, "c1", None)
    while batch := recorder.take_encoded():
        events += batch[1]
        archive.append(decode(batch[0]), ArchiveCommit(f"{events}-0"))
    return events
