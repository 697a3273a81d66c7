"""The cells of the picture of the routing: of each destination shown, and which version of the definitions is drawn."""

from __future__ import annotations

from collections.abc import Iterable

from brokerapp.errors import InvalidDestination
from brokerapp.model.destination import Destination
from console.access.roles import Sees, everything
from console.broker.live.frame_delta import Cells
from console.broker.snapshot import BrokerSnapshot
from console.routing.map.traffic import flow_cells


def graph_cells(picture: BrokerSnapshot, rows: Iterable[str], sees: Sees = everything) -> Cells:
    """Return the cells of the routing map, named `ROW#NAME`; a row is a destination in its native form."""
    cells: Cells = {"version": picture.routing}
    for row in rows:
        try:
            destination = Destination.parse(row)
        except InvalidDestination:
            continue
        if sees(destination):
            cells |= {f"{row}#{name}": value for name, value in flow_cells(picture, destination).items()}
    return cells
