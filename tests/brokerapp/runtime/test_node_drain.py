"""Test the steps by which a node is drained, and what ends them."""

import asyncio

import pytest

from brokerapp.runtime.draining import node_drain
from brokerapp.runtime.draining.node_drain import DrainState, NodeDrain


class Steps:
    """What a drain does to its node, in order."""

    def __init__(self):
        self.done, self.is_requested, self.is_handed_over = [], True, False
        self.drain = NodeDrain(
            is_requested=lambda: self.is_requested, is_handed_over=lambda: self.is_handed_over, entrance=self,
            release=self, set_dispatching=lambda on: self.done.append(f"dispatching {on}"), report=self.report,
        )  # fmt: skip

    def pause(self):
        self.done.append("pause")

    async def resume(self):
        self.done.append("resume")

    async def run(self):
        self.done.append("release")
        return 3

    async def report(self):
        self.done.append(f"report {self.drain.status()}")


def test_clients_are_let_go_after_other_nodes_have_taken_over_and_come_back_when_the_drain_ends():
    async def scenario():
        steps = Steps()
        running = asyncio.create_task(steps.drain.run())
        steps.drain.on_members_followed()
        await asyncio.sleep(0.05)
        assert (steps.done, steps.drain.state) == (["pause"], DrainState.DRAINING)
        steps.is_handed_over = True
        await asyncio.wait_for(steps.drain.wait(), 5)
        assert steps.done[1:3] == ["dispatching False", "release"]
        assert steps.drain.status() == {"draining": "drained", "released": 3}
        steps.is_requested = False
        steps.drain.on_members_followed()
        await asyncio.sleep(0.05)
        assert steps.done[-3:] == ["dispatching True", "resume", "report {}"]
        running.cancel()

    asyncio.run(scenario())


def test_a_node_whose_last_other_one_fails_meanwhile_keeps_its_clients():
    async def scenario():
        steps = Steps()
        running = asyncio.create_task(steps.drain.run())
        steps.drain.on_members_followed()
        await asyncio.sleep(0.05)
        steps.is_requested, steps.is_handed_over = False, True  # it is alone
        await asyncio.wait_for(steps.drain.wait(), 5)
        assert "release" not in steps.done
        assert steps.drain.state is DrainState.SERVING
        running.cancel()

    asyncio.run(scenario())


def test_clients_are_let_go_though_other_nodes_do_not_take_over_in_time(monkeypatch: pytest.MonkeyPatch):
    async def scenario():
        steps = Steps()
        running = asyncio.create_task(steps.drain.run())
        steps.drain.on_members_followed()
        await asyncio.wait_for(steps.drain.wait(), 5)
        assert steps.done[:3] == ["pause", "dispatching False", "release"]
        running.cancel()

    monkeypatch.setattr(node_drain, "HANDOVER_SECONDS", 0.05)
    asyncio.run(scenario())
