"""Observer of links and members: what a part of the nodes does when they come and go."""

from __future__ import annotations


class NodeObserver:
    """A part that follows links, members and logs. What a subclass does not override does nothing."""

    def on_link_up(self, session: str) -> None:
        """Say again what a node did not confirm."""

    def introduce(self, session: str) -> None:
        """Tell a node what it must know of our clients: it is new, or the link to it."""

    def on_link_down(self, session: str) -> None:
        """Forget what a node says again over the next link."""

    def on_epoch_done(self, session: str, epoch: int) -> None:
        """Go on as a node has said all that its clients hold, and dispatches nothing that left it in this epoch."""

    def on_members_changed(self) -> None:
        """Forget what held with the former members. Logs follow later."""

    def on_member_removed(self, session: str) -> None:
        """Forget a node that is no member any more."""

    def on_logs_reassigned(self) -> None:
        """Go on as logs have followed the members."""

    def on_log_removed(self, log: str) -> None:
        """Forget a log that does not exist any more."""
