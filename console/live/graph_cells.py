"""The cells of the picture of the routing: of each destination shown, and which version of the definitions is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerapp.destination import Destination
from brokerapp.errors import InvalidDestination
from console.live.frames import Cells
from console.live.picture import Picture
from console.rights import Sees, everything
from console.routing.flow import flow_of

if TYPE_CHECKING:
    from console.live.topics import Topic


def graph_cells(picture: Picture, topic: Topic, sees: Sees = everything) -> Cells:
    """What `flow_of` says of each row, which is a destination in its native form, as `ROW#NAME`."""
    cells: Cells = {"version": picture.routing}
    for row in topic.rows:
        try:
            destination = Destination.parse(row)
        except InvalidDestination:
            continue
        if sees(destination):
            cells |= {f"{row}#{name}": value for name, value in flow_of(picture, destination).items()}
    return cells
