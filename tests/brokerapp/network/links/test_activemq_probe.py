"""Test how a bridge learns the name of an ActiveMQ."""

from __future__ import annotations

import asyncio

import pytest

from brokerapp.network.links import activemq_probe
from brokerapp.network.links.broker_link import BridgeConnectionLost
from brokerapp.stomp.frames import Frame

ADVISORY = ("name", Frame("MESSAGE", {"originBrokerName": "classic"}))
ECHO = ("echo", Frame("MESSAGE", {}))


def refusal(receipt):
    return receipt, Frame("ERROR", {"receipt-id": receipt, "message": "not authorized"})


class Answering:
    """A link at whose other end it is answered so, some time after it is asked."""

    def __init__(self, *answers: tuple[str, Frame]) -> None:
        self.name, self._answers = "old", answers
        loop = asyncio.get_running_loop()
        self.lost, self.on_error, self._told = loop.create_future(), None, {}
        self.unsubscribed: set[str] = set()

    def subscribe(self, id, destination, told, headers) -> None:
        self._told[id] = told

    def send(self, command, headers) -> None:
        asyncio.get_running_loop().call_later(0.02, self._answer)

    def _answer(self) -> None:
        for id, frame in self._answers:
            (self._told[id] if frame.command == "MESSAGE" else self.on_error)(frame)

    def unsubscribe(self, id) -> None:
        self.unsubscribed.add(id)


@pytest.mark.parametrize(
    ("answers", "name", "ended"),
    [
        ([ADVISORY, ECHO], "classic", {"name", "echo"}),
        ([refusal("echo"), ADVISORY], "classic", {"name"}),
        ([refusal("name"), ECHO], None, {"echo"}),
        ([ECHO], None, {"name", "echo"}),
    ],
    ids=["told", "told although there are no temporary queues", "refused", "without advisories"],
)
async def test_an_advisory_names_it_and_only_a_subscription_that_is_there_is_ended(answers, name, ended):
    link = Answering(*answers)
    assert await activemq_probe.read_broker_name(link) == name
    assert link.unsubscribed == ended


@pytest.mark.parametrize("answers", [[], [refusal("echo")]], ids=["silent", "refuses to be asked"])
async def test_one_that_does_not_answer_is_not_taken_for_one_without_a_name(monkeypatch, answers):
    monkeypatch.setattr(activemq_probe, "ANSWER_SECONDS", 0.1)
    with pytest.raises(BridgeConnectionLost, match="its broker name is unknown"):
        await activemq_probe.read_broker_name(Answering(*answers))
