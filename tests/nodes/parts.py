"""The parts of one node's placement, with fakes of the broker's parts that they use."""

from types import SimpleNamespace
from unittest.mock import MagicMock

from brokerapp.nodes.assembly import NodeAssembly
from brokerapp.nodes.links.members import NodeMember, NodeMembers
from brokerapp.nodes.links.peers import Peers


class Queues(dict):
    """Logs by name, of which a node knows none at first; they are iterated over as in a QueueRegistry."""

    def __iter__(self):
        return iter(self.values())

    def __contains__(self, name):
        return self.get(name) is not None

    def holds(self, log):
        return any(each is log for each in self.values())


class FakeBroker:
    """A broker with these parts; the others take whatever they are asked, and do nothing."""

    def __init__(self, session="1", **parts):
        vars(self).update({"session": session, "queues": Queues(), **parts})

    def __getattr__(self, part):
        return vars(self).setdefault(part, MagicMock(name=part))

    def context(self):
        return SimpleNamespace(session=self.session, commits=self.commits, counters=self.counters, timers=self.timers)


def placement_of(session="1", **parts):
    """What joins a node with the others, which is alone."""
    nodes = NodeAssembly(request_dispatch=lambda: None, can_dispatch=lambda: True)
    nodes.initialise(FakeBroker(session, **parts))
    return nodes.placement


class FakeTransport:
    """Links to all other nodes, which call `on_send` with what is sent."""

    def __init__(self, on_send, on_reconnect=lambda _session: None):
        self.send, self.reconnect = on_send, on_reconnect

    def is_linked(self, _session):
        return True

    def unsent_bytes(self, _session):
        return 0


def peers_of(session, others, on_send, on_reconnect=lambda _session: None):
    """What a node knows of the others, which are members already and linked."""
    peers = Peers(session)
    peers.attach_transport(FakeTransport(on_send, on_reconnect))
    peers.set_joining(is_joining=False)
    peers.set_members(NodeMembers(1, [NodeMember(each, each) for each in (session, *others)], session))
    return peers
