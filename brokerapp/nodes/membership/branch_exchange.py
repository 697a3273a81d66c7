"""Asks other nodes about branches of distributed transactions in which clients of several nodes take part."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

from brokerapp.engine.clients.branch_parts import BranchStep
from brokerapp.nodes.links.node_requests import NodeRequests
from brokerapp.nodes.links.observers import NodeObserver
from brokerapp.nodes.links.peers import Peers
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.nodes.ports import LocalBranches


class BranchExchange(NodeObserver):
    """Carries questions about branches, and their answers, between nodes."""

    def __init__(self, *, peers: Peers, requests: NodeRequests, branches: LocalBranches) -> None:
        self._peers, self._requests, self._branches = peers, requests, branches

    def others(self) -> Collection[str]:
        """Return the sessions of the other nodes that know what branches are."""
        knows = self._peers.members.understands
        return [each for each in self._peers.other_sessions if knows(each, PeerMessageType.BRANCH)]

    def ask(
        self,
        step: BranchStep,
        name: str,
        then: Callable[[Mapping[str, str]], None],
        *,
        sessions: Collection[str] | None = None,
        connection: str = "",
    ) -> None:
        """Ask nodes, all others unless `sessions` says which, and call back with their answers by session.

        A node that is no member any more answers "". `connection`: of the client that takes part.
        """
        asked, answers = set(self.others() if sessions is None else sessions), dict[str, str]()

        def on_answer(session: str, answer: str) -> None:
            answers[session] = answer
            if len(answers) == len(asked):
                then(answers)

        if not asked:
            then(answers)
        for session in asked:
            fields = int(step), name, connection
            is_member = [session] if self._peers.is_other_member(session) else []
            self._requests.send(is_member, PeerMessageType.BRANCH, fields, partial(on_answer, session))

    def on_branch(self, session: str, id: int, step: int, name: str, connection: str) -> None:
        """Answer what another node asks about a branch."""
        then = partial(self._peers.confirm, session, id)
        self._branches.on_step(session, BranchStep(step), name, connection, then)

    def on_member_removed(self, session: str) -> None:
        """Roll back what clients of a node took part in that is no member any more."""
        self._branches.on_node_lost(session)
