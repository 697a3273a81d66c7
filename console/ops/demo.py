"""Run a demo workload: order processing on a running broker over real STOMP connections.

    shop --> topic VirtualTopic.Orders --> queue Consumer.Billing.VirtualTopic.Orders  --> billing --> queue Invoices
                                       --> queue Consumer.Shipping.VirtualTopic.Orders --> shipping        |
                                       --> queue Consumer.Audit.VirtualTopic.Orders    --> audit        printing

Billing refuses orders with an expired card, which become dead letters. Audit is slower than the shop and falls behind.
"""

from __future__ import annotations

import json
import math
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import stomp
from django.conf import settings
from stomp.exception import StompException
from stomp.utils import Frame

from console.accounts import initial_admin
from console.ops.client_addresses import STOMP_SCHEMES, ClientAddress, local_addresses
from console.ops.command_line import DEMO_SECONDS

ORDERS = "/topic/VirtualTopic.Orders"
INVOICES = "/queue/Invoices"
INVOICED = ("correlation-id", "customer", "amount", "region")  # what an invoice takes over from its order
DEAD_LETTERS = "ActiveMQ.DLQ"

DAY_SECONDS = 60.0  # the business has its morning rush and its night within a minute
QUIET_RATE, BUSY_RATE, BURST_RATE = 4.0, 24.0, 40.0  # orders a second
BURST_EVERY_SECONDS, BURST_SECONDS = 17.0, 2.0
BEAT_SECONDS = 0.1  # orders are sent in small groups, this often
ANSWER_SECONDS = 10.0  # for the broker to confirm a subscription
CLOSING_SECONDS = 5.0  # for the last receipts and for those who keep up to finish
HEART_BEAT_MS = 10_000
EXPIRED_CARD_EVERY = 25  # orders

REGIONS = {"eu": 5, "us": 3, "apac": 2}  # with their weights
ARTICLES = {"lamp": 49.0, "desk": 320.0, "chair": 145.0, "shelf": 89.0, "rug": 210.0}
CUSTOMERS = 40


class DemoFailed(Exception):
    """Report in one sentence why the demo stopped."""


@dataclass(frozen=True, slots=True)
class ConsumerPool:
    """Describe consumers of one queue: seconds for each message, and their prefetch."""

    name: str
    queue: str
    consumers: int
    seconds: float
    prefetch: int = 10


BILLING = ConsumerPool("Billing", "/queue/Consumer.Billing.VirtualTopic.Orders", consumers=2, seconds=0.02)
SHIPPING = ConsumerPool("Shipping", "/queue/Consumer.Shipping.VirtualTopic.Orders", consumers=3, seconds=0.05)
AUDIT = ConsumerPool("Audit", "/queue/Consumer.Audit.VirtualTopic.Orders", consumers=1, seconds=0.2, prefetch=5)
PRINTING = ConsumerPool("Printing", INVOICES, consumers=1, seconds=0.01)
POOLS = (PRINTING, BILLING, SHIPPING, AUDIT)


def orders_per_second(elapsed: float) -> float:
    """Return the rate of orders `elapsed` seconds after the start: daily waves and bursts."""
    if elapsed % BURST_EVERY_SECONDS > BURST_EVERY_SECONDS - BURST_SECONDS:
        return BURST_RATE
    wave = (1 + math.sin(2 * math.pi * elapsed / DAY_SECONDS)) / 2  # it opens in mid-morning
    return QUIET_RATE + (BUSY_RATE - QUIET_RATE) * wave


def order(number: int, dice: random.Random) -> tuple[dict[str, str], str]:
    """Return the headers and the JSON body of an order."""
    [region] = dice.choices(list(REGIONS), REGIONS.values())
    lines = [
        {"article": article, "quantity": dice.randint(1, 4), "price": ARTICLES[article]}
        for article in dice.sample(sorted(ARTICLES), dice.randint(1, 3))
    ]
    amount = sum(line["quantity"] * line["price"] for line in lines)
    express = dice.random() < 0.2
    headers = {
        "persistent": "true",
        "priority": "8" if express else "4",
        "correlation-id": f"order-{number:06}",
        "type": "order",
        "region": region,
        "customer": f"C-{dice.randrange(CUSTOMERS):04}",
        "amount": f"{amount:.2f}",
        "express": str(express).lower(),
        "card": "expired" if number % EXPIRED_CARD_EVERY == EXPIRED_CARD_EVERY // 2 else "valid",
    }
    return headers, json.dumps({"order": number, "lines": lines, "amount": amount, "currency": "EUR"})


@dataclass(frozen=True, slots=True)
class DemoResult:
    """Hold the orders confirmed by the broker, and the messages acknowledged and rejected by each pool."""

    seconds: float
    orders: int
    done: Counter[str]
    refused: int

    def __str__(self) -> str:
        billed, shipped, printed, audited = (self.done[pool.name] for pool in (BILLING, SHIPPING, PRINTING, AUDIT))
        return " ".join(
            [
                f"In {self.seconds:.0f} s the demo published {self.orders} orders to the topic VirtualTopic.Orders.",
                f"Billing acknowledged {billed} and rejected {self.refused} with an expired card.",
                f"The rejected ones are dead letters in {DEAD_LETTERS}, except those resubmitted in the meantime.",
                f"Shipping acknowledged {shipped}. {printed} invoices were consumed from the queue Invoices.",
                f"Audit, a slow consumer, acknowledged {audited} and left a backlog of {self.orders - audited}",
                "in Consumer.Audit.VirtualTopic.Orders. In the console, open Queues, browse the backlog and the dead",
                "letters, filter them with a selector such as card = 'expired' or amount > 1000,",
                "and run the traffic analysis.",
            ]
        )


class DemoWorkload:
    """Hold the connections of the demo and its counters; a thread of stomp.py serves each connection."""

    def __init__(self, address: ClientAddress, login: str, passcode: str) -> None:
        self._address, self._credentials = address, (login, passcode)
        self._connections: list[stomp.StompConnection12] = []
        self.closing = threading.Event()
        self.trouble: str | None = None
        self.done: Counter[str] = Counter()
        self.refused = 0
        self.sent = self.confirmed = 0
        self._counting = threading.Lock()

    def open(self) -> stomp.StompConnection12:
        """Open a connection. Raises DemoFailed."""
        server = (self._address.host, self._address.port)
        connection = stomp.StompConnection12(
            [server],
            heartbeats=(HEART_BEAT_MS, HEART_BEAT_MS),
            reconnect_attempts_max=1,
            auto_content_length=False,  # so that bodies are text to those who tell by this header
        )
        if self._address.has_tls:
            connection.set_ssl([server], verify=False)  # it does not leave this machine
        connection.set_listener("trouble", ErrorListener(self))
        try:
            connection.connect(*self._credentials, wait=True)
        except (StompException, OSError) as error:
            raise DemoFailed(self.trouble or f"no STOMP connection to {self._address.stomp_text}") from error
        self._connections.append(connection)
        return connection

    @property
    def is_connected(self) -> bool:
        """Return whether the broker has accepted a login."""
        return bool(self._connections)

    def start_pool(self, pool: ConsumerPool) -> None:
        """Subscribe the consumers of a pool; returns once the broker knows them."""
        for _ in range(pool.consumers):
            connection = self.open()
            worker = PoolConsumer(self, pool, connection)
            connection.set_listener("worker", worker)
            limits = {"activemq.prefetchSize": str(pool.prefetch)}
            connection.subscribe(pool.queue, id="1", ack="client-individual", headers=limits, receipt="subscribed")
            if not worker.subscribed.wait(ANSWER_SECONDS):
                raise DemoFailed(self.trouble or f"no answer to a subscription to {pool.queue} in {ANSWER_SECONDS:g} s")

    def count(self, name: str) -> None:
        """Count a message processed by the pool of this name."""
        with self._counting:
            self.done[name] += 1

    def close(self) -> None:
        """Close all connections; unacknowledged messages are requeued."""
        self.closing.set()
        for connection in self._connections:
            with suppress(StompException, OSError):
                connection.disconnect()


class ErrorListener(stomp.ConnectionListener):
    """Note errors of the broker and lost connections."""

    def __init__(self, business: DemoWorkload) -> None:
        self._business = business

    def on_error(self, frame: Frame) -> None:
        what = "the broker rejected a message" if self._business.is_connected else "the login was refused"
        self._business.trouble = f"{what}: {frame.headers.get('message') or frame.body}"

    def on_disconnected(self) -> None:
        if not self._business.closing.is_set():
            self._business.trouble = self._business.trouble or "the broker closed a connection"


class ReceiptListener(stomp.ConnectionListener):
    """Count receipts: the orders that the broker has stored."""

    def __init__(self, business: DemoWorkload) -> None:
        self._business = business

    def on_receipt(self, frame: Frame) -> None:
        self._business.confirmed += 1


class PoolConsumer(stomp.ConnectionListener):
    """Consume messages of a pool."""

    def __init__(self, business: DemoWorkload, pool: ConsumerPool, connection: stomp.StompConnection12) -> None:
        self._business, self._pool, self._connection = business, pool, connection
        self.subscribed = threading.Event()

    def on_receipt(self, frame: Frame) -> None:
        self.subscribed.set()

    def on_message(self, frame: Frame) -> None:
        business, headers = self._business, frame.headers
        if business.closing.wait(self._pool.seconds):
            return  # not acknowledged: somebody else will get it
        with suppress(StompException):  # the connection is gone: so is the right to acknowledge
            if self._pool is BILLING and headers.get("card") == "expired":
                self._connection.nack(headers["ack"])
                business.refused += 1
                return
            if self._pool is BILLING:
                self._connection.send(INVOICES, frame.body, "application/json", headers=invoice_headers(headers))
            self._connection.ack(headers["ack"])
            business.count(self._pool.name)


def invoice_headers(order_headers: dict[str, str]) -> dict[str, str]:
    """Return the headers of an order's invoice; orders of other producers may lack some."""
    kept = {name: order_headers[name] for name in INVOICED if name in order_headers}
    return kept | {"persistent": "true", "type": "invoice"}


def run(
    address: ClientAddress, login: str, passcode: str, seconds: float, announce: Callable[[], None] = lambda: None
) -> DemoResult:
    """Run the workload for so many seconds, or until Ctrl-C; `announce` when it is connected. Raises DemoFailed."""
    started = time.monotonic()
    business = DemoWorkload(address, login, passcode)
    try:
        for pool in POOLS:  # before the first order: a virtual topic copies to the consumer queues that exist
            business.start_pool(pool)
        announce()
        _publish(business, seconds)
        _wait_for_pools(business)
    except (StompException, OSError) as error:
        raise DemoFailed(f"the connection to {address.stomp_text} was lost") from error
    finally:
        business.close()
    return DemoResult(time.monotonic() - started, business.confirmed, business.done, business.refused)


def run_here(
    seconds: float = DEMO_SECONDS,
    login: str = initial_admin.NAME,
    passcode: str | None = None,
    announce: Callable[[], None] = lambda: None,
) -> DemoResult:
    """Run the workload on this installation's broker, by default as the initial admin. Raises DemoFailed."""
    passcode = passcode or initial_admin.stored_password()
    if passcode is None:
        where = initial_admin.password_file()
        raise DemoFailed(f"no password for {login}: enter it with --passcode, as {where} does not exist")
    addresses = [each for each in local_addresses(settings.SLUICE, STOMP_SCHEMES) if each.is_socket]
    if not addresses:
        raise DemoFailed("the demo does not speak STOMP over WebSocket: set SLUICE_STOMP_PORT or SLUICE_STOMP_SSL_PORT")
    return run(addresses[0], login, passcode, seconds, announce)


def _publish(business: DemoWorkload, seconds: float) -> None:
    """Publish orders for so many seconds, or until Ctrl-C."""
    shop = business.open()
    shop.set_listener("confirmations", ReceiptListener(business))
    dice, due = random.Random(), 0.0
    started = last = time.monotonic()
    with suppress(KeyboardInterrupt):
        while (now := time.monotonic()) < started + seconds:
            due, last = due + orders_per_second(now - started) * (now - last), now
            while due >= 1:
                due -= 1
                business.sent += 1
                headers, body = order(business.sent, dice)
                shop.send(ORDERS, body, "application/json", headers=headers, receipt=headers["correlation-id"])
            if business.trouble:
                raise DemoFailed(f"{business.trouble}, after {business.confirmed} confirmed orders")
            time.sleep(BEAT_SECONDS)


def _wait_for_pools(business: DemoWorkload) -> None:
    """Wait for the last receipts and for the fast pools, up to a limit."""
    deadline = time.monotonic() + CLOSING_SECONDS
    while time.monotonic() < deadline:
        billed = business.done[BILLING.name] + business.refused
        if min(business.confirmed, billed, business.done[SHIPPING.name]) >= business.sent:
            return
        time.sleep(BEAT_SECONDS)
