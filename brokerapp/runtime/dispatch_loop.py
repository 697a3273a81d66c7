"""Run a round of dispatch once per tick of the event loop, while the node is certain to be a member."""

from __future__ import annotations

import asyncio

from brokerapp.core.dispatch.dispatcher import Dispatcher
from brokerapp.nodes.membership.membership import NodeMembership
from brokerapp.nodes.placement import NodePlacement

#: Seconds until a node looks again whether it may give anything out, as it may have been taken for dead.
UNSURE_SECONDS = 0.05


class DispatchLoop:
    """Runs rounds of dispatch of a node, until it has `failed`."""

    def __init__(self, failed: asyncio.Future[None]) -> None:
        self._failed = failed
        self.call_soon = failed.get_loop().call_soon  #: calls back in the next turn of the event loop
        self._requested = False
        self._unsure: asyncio.TimerHandle | None = None  # of the next look whether anything may be given out

    def attach(self, dispatcher: Dispatcher, placement: NodePlacement, membership: NodeMembership) -> None:
        """Run this dispatcher as long as the node's membership is certain.

        Called once, before anything is dispatched: the group commit, which the dispatcher needs, calls `run`.
        """
        self._dispatcher, self._placement, self._membership = dispatcher, placement, membership

    def request(self) -> None:
        """Run a round of dispatch at the end of this tick."""
        if not self._requested:
            self._requested = True
            self.call_soon(self._run_requested)

    def _run_requested(self) -> None:
        if self._requested:  # else it was run meanwhile
            self.run()

    def run(self) -> None:
        """Run a round of dispatch now."""
        self._requested = False
        if self._failed.done():
            return
        if not self._placement.is_alone:
            self._placement.append_notices.send()
        if self.can_dispatch():
            if not self._dispatcher.is_stopped:
                self._placement.outbound_deliveries.deliver_due()
            self._dispatcher.run_once()
        elif self._unsure is None:
            self._unsure = asyncio.get_running_loop().call_later(UNSURE_SECONDS, self._retry)

    def can_dispatch(self) -> bool:
        """Return whether the node is certain to be a member, so that no other dispatches the same."""
        return self._membership.is_confirmed

    def _retry(self) -> None:
        self._unsure = None
        self.request()

    def stop(self) -> None:
        """Cancel the next check of the membership."""
        if self._unsure is not None:
            self._unsure.cancel()
