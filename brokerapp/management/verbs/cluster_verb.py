"""brokerctl's verb `cluster`: the members as this broker sees them, and the record of changes."""

from __future__ import annotations

from argparse import Namespace

from brokerapp.admin import BrokerAdmin
from brokerapp.cluster.status import MemberState
from brokerapp.management.verbs.declaration import Answer


async def cluster(admin: BrokerAdmin, _args: Namespace) -> Answer:
    """Show the state of the cluster."""
    found = await admin.cluster()
    if found is None:
        return None, [f"broker {admin.broker} is not part of a cluster"]
    lines = []
    width = max(len(each.name) for each in found.members)
    for each in found.members:
        role = " master" if each.is_master else ""
        back = "" if each.linked_back or each.state is MemberState.SELF else ", no link back"
        why = f": {each.last_error}" if each.last_error else ""
        lines.append(f"{each.name:<{width}}  {each.state}{role}  {each.address}{back}{why}")
    if found.master:
        lines.append(
            f"record {found.record_id or 'none yet'}: version {found.record_version}, {found.recorded} entries"
        )
    else:
        lines.append("no master: changes made while a broker is unreachable are not sent to it later")
    if found.suspended:
        lines.append("clients cannot connect yet")
    return found.to_json(), lines + ([found.why_not] if found.why_not else [])
