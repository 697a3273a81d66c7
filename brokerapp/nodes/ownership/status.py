"""Report to operators the state of a node among the nodes of its broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from brokerapp.nodes.ports import LocalBroker


def ownership_status(broker: LocalBroker) -> dict[str, Any]:
    """Nothing of a node that is alone. Else `epoch`: of the members; `logs` at home here; `served` here: consumers of
    other nodes' clients; `unreached`: names of live nodes without a link from here; `settled`: whether all that is at
    home here is given out.
    """
    homes = broker.placement
    if not homes.other_sessions:
        return {}
    return {
        "epoch": homes.members.epoch,
        "logs": sum(not log.is_remote for log in broker.queues),
        "served": homes.inbound_consumers.count,
        "unreached": sorted(each.name for each in homes.members.others if not homes.is_linked(each.session)),
        "settled": homes.handoff_in.can_take_over,
    }
