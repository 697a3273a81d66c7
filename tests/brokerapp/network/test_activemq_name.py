"""How a bridge learns the name of an ActiveMQ."""

from __future__ import annotations

import asyncio

import pytest

from brokerapp.network import activemq
from brokerapp.stomp.frames import Frame


class Answering:
    """A link at whose other end a subscription is answered so, or not at all."""

    def __init__(self, answer: Frame | None) -> None:
        self.name, self._answer = "old", answer
        self.lost, self.refused = asyncio.get_running_loop().create_future(), None
        self.unsubscribed: list[str] = []

    def subscribe(self, id, destination, told, headers) -> None:
        if self._answer is not None:
            (told if self._answer.command == "MESSAGE" else self.refused)(self._answer)

    def unsubscribe(self, id) -> None:
        self.unsubscribed.append(id)


@pytest.mark.parametrize(
    ("answer", "name", "ended"),
    [
        (Frame("MESSAGE", {"originBrokerName": "classic"}), "classic", ["name"]),
        (Frame("ERROR", {"message": "not authorized"}), None, []),
        (None, None, ["name"]),
    ],
    ids=["told", "refused", "silent"],
)
async def test_an_advisory_names_it_and_only_a_subscription_that_is_there_is_ended(monkeypatch, answer, name, ended):
    monkeypatch.setattr(activemq, "NAME_SECONDS", 0.01)
    link = Answering(answer)
    assert await activemq.ask_name(link) == name
    assert link.unsubscribed == ended
