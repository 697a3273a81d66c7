"""The live socket: one a browser tab, many topics, latest-value frames with only the cells that changed.

Its address names the user who signed in when the page was loaded, and as whom the page shows the console, where that
is somebody else: `?user=kim&as=user+sam`.
The client sends `{"type": "subscribe", "topic": T, "rows": [...]}`, `{"type": "unsubscribe", "topic": T}` and
`{"type": "visible", "value": false}`. About once a second (less often to a hidden tab) the server sends
`{"type": "frame", "age": SECONDS, "trouble": TEXT, "topics": {T: {CELL: VALUE}}}`, where age says how old the numbers
are; it says no with `{"type": "refused", "topic": T, "reason": TEXT}`. A frame is computed when the one before is out,
so a slow socket skips some, misses nothing, and makes nobody keep anything for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.utils import timezone

from brokerapp.errors import BrokerError
from brokerapp.model.time_series import FINE
from console.access.permission_version import permission_version
from console.access.permissions import has_permission, permission_message, visible
from console.access.roles import everything
from console.accounts.impersonation import effective_user, impersonated_name, real_user
from console.broker.live.channels import CELLS, FROM_DATABASE, PERMISSIONS, VISIBLE_ROWS, LiveChannel
from console.broker.live.frame_delta import Cells, delta, merge_delta
from console.broker.live.run_notices import notices
from console.broker.live.sparklines import read_sparklines_async
from console.broker.mirror import BrokerMirror, mirror
from console.broker.snapshot import BrokerSnapshot
from console.ui.preferences.timezones import get_zone, zone_name_of

logger = logging.getLogger(__name__)

#: Seconds between two frames, to a tab that is seen and to one that is not.
INTERVAL, HIDDEN_INTERVAL = 1.0, 5.0
#: Bounds what one tab may ask for.
MAX_TOPICS, MAX_ROWS = 20, 200
#: Sparklines of a list that one frame carries.
SPARKS_A_FRAME = 20
#: Seconds after which a user's rights are looked up again, and runs are read although no notice came.
RECHECK = 30.0
RUNS_RECHECK = 5.0
#: The same for channels of runs: their progress comes without a notice.
PROGRESS_RECHECK = 1.0
#: Close code for somebody who is not logged in (any more).
LOGGED_OUT = 4401
#: And for a page that another user loaded, or as somebody else than its user sees the console as now: it must be
#: loaded again.
SEEN_OTHERWISE = 4409


def _is_shown_to(user: Any, query: bytes) -> bool:
    """Return whether the page was loaded by this user, and as whom they see the console, by the socket's address."""
    said = parse_qs(query.decode())
    loaded_by = said.get("user", [real_user(user).get_username()])[0]
    return loaded_by == real_user(user).get_username() and said.get("as", [""])[0] == impersonated_name(user)


class LiveConsumer(AsyncJsonWebsocketConsumer):
    """Serves one browser tab over a WebSocket."""

    channel_layer_alias = None  # see run_notices.py

    async def connect(self) -> None:
        """Accept the connection of a user who is signed in."""
        self._topics: dict[str, LiveChannel] = {}
        self._sent: dict[str, Cells] = {}
        self._interval = INTERVAL
        self._wanted = asyncio.Event()  # something is asked for at once
        self._read: dict[str, float] = {}  # when topics were last read from the database
        self._sparked: dict[str, tuple[float, int]] = {}  # of a list: when lines are due, and from which row on
        self._checked = time.monotonic()
        self._version = 0  #: of everybody's rights
        self._pump: asyncio.Task | None = None
        await self.accept()
        if not self.scope["user"].is_authenticated:
            await self.close(LOGGED_OUT)
            return
        if not _is_shown_to(self.scope["user"], self.scope["query_string"]):
            await self.close(SEEN_OTHERWISE)
            return
        self._mirror: BrokerMirror = await asyncio.to_thread(mirror)
        loop = asyncio.get_running_loop()
        reader = await asyncio.to_thread(notices)
        self._stop_listening = reader.listen(lambda notice: loop.call_soon_threadsafe(self._noticed))
        self._sees = await database_sync_to_async(visible)(self.scope["user"])
        self._zone = get_zone(await database_sync_to_async(zone_name_of)(real_user(self.scope["user"])))
        self._pump = asyncio.create_task(self._send_frames())

    async def disconnect(self, code: int) -> None:
        """Stop sending frames to the closed tab."""
        if self._pump:
            self._pump.cancel()
            self._stop_listening()

    async def receive_json(self, content: Any, **kwargs: Any) -> None:
        """Handle a request of the tab."""
        match content:
            case {"type": "subscribe", "topic": str(text), **rest}:
                await self._subscribe(text, rest.get("rows", []))
            case {"type": "unsubscribe", "topic": str(text)}:
                self._forget(text)
            case {"type": "visible", "value": bool(is_visible)}:
                self._interval = INTERVAL if is_visible else HIDDEN_INTERVAL
                self._wanted.set()
            case _:
                await self.send_json({"type": "refused", "topic": "", "reason": "Unknown request."})

    def _noticed(self) -> None:
        self._read.clear()
        self._wanted.set()

    # -- subscriptions

    async def _subscribe(self, text: str, rows: Any) -> None:
        is_list = isinstance(rows, list) and len(rows) <= MAX_ROWS and all(isinstance(row, str) for row in rows)
        topic = LiveChannel.parse(text, tuple(rows)) if is_list else None
        if topic is None or (text not in self._topics and len(self._topics) >= MAX_TOPICS):
            await self.send_json({"type": "refused", "topic": text, "reason": "Unknown channel."})
            return
        if not await self._is_let_stay():
            return
        if not await self._may_watch(topic):
            await self._refuse(text, topic)
            return
        self._forget(text)
        self._topics[text] = topic
        self._wanted.set()

    async def _may_watch(self, topic: LiveChannel) -> bool:
        return await database_sync_to_async(has_permission)(
            self.scope["user"], PERMISSIONS[topic.name], topic.destination
        )

    async def _refuse(self, text: str, topic: LiveChannel) -> None:
        reason = permission_message(PERMISSIONS[topic.name], topic.destination)
        await self.send_json({"type": "refused", "topic": text, "reason": reason})

    def _forget(self, text: str) -> None:
        for each in (self._topics, self._sent, self._sparked, self._read):
            each.pop(text, None)

    # -- frames

    async def _send_frames(self) -> None:
        while True:
            self._wanted.clear()
            if not await self._is_let_stay():
                return
            await self.send_json(await self._frame())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), self._interval)

    async def _frame(self) -> dict[str, Any]:
        picture = self._mirror.picture
        topics = {}
        for text, topic in list(self._topics.items()):
            cells = await self._cells(picture, text, topic)
            before = self._sent.get(text, {})
            changed = delta(before, cells)
            if changed and self._topics.get(text) is topic:
                self._sent[text] = merge_delta(before, changed)
                topics[text] = changed
        age = round(max(0.0, time.time() - picture.at), 1) if picture.at else None
        return {"type": "frame", "age": age, "trouble": picture.trouble, "topics": topics}

    async def _cells(self, picture: BrokerSnapshot, text: str, topic: LiveChannel) -> Cells:
        if topic.name not in CELLS:
            return await self._cells_from_database(text, topic)
        knows = await self._knows(picture, topic)
        with timezone.override(self._zone):
            cells = CELLS[topic.name](picture, topic, knows)
        if topic.name == "list":
            await self._add_sparks(picture, text, topic, cells)
        return cells

    async def _knows(self, picture: BrokerSnapshot, topic: LiveChannel) -> Callable[[Any], bool]:
        """Return a predicate for the rows of a channel that the user may see; no row where no node answers."""
        if topic.name not in VISIBLE_ROWS or self._sees is everything:
            return self._sees
        with contextlib.suppress(BrokerError):
            return (await asyncio.to_thread(VISIBLE_ROWS[topic.name], picture, self._sees)).__contains__
        return frozenset().__contains__

    async def _add_sparks(self, picture: BrokerSnapshot, text: str, topic: LiveChannel, cells: Cells) -> None:
        """Add new sparklines, each once in a step of the history; a few in a frame, to keep frames small."""
        now = time.monotonic()
        due, place = self._sparked.setdefault(text, (now + FINE.step, 0))  # the page came with some
        if picture.trouble or now < due:
            return
        shown = topic.destinations[place : place + SPARKS_A_FRAME]
        is_last = place + SPARKS_A_FRAME >= len(topic.destinations)
        self._sparked[text] = (now + FINE.step, 0) if is_last else (due, place + SPARKS_A_FRAME)
        with contextlib.suppress(BrokerError):  # then the numbers are stale too, and the frame says so
            for destination, line in (await read_sparklines_async(picture, list(filter(self._sees, shown)))).items():
                cells["rows"][destination.name]["spark"] = line

    async def _cells_from_database(self, text: str, topic: LiveChannel) -> Cells:
        now = time.monotonic()
        recheck = PROGRESS_RECHECK if topic.name in ("run", "runs") else RUNS_RECHECK
        if now - self._read.get(text, -recheck) < recheck:
            return {}
        self._read[text] = now
        with timezone.override(self._zone):
            return await database_sync_to_async(FROM_DATABASE[topic.name])(self.scope["user"], topic)

    async def _is_let_stay(self) -> bool:
        """Return whether the user may still be here, by the rights that are in force now."""
        return not await self._must_recheck() or await self._recheck()

    async def _must_recheck(self) -> bool:
        """Return whether permissions changed, or the session may have expired."""
        version = await database_sync_to_async(permission_version)()
        changed, self._version = version != self._version, version
        return changed or time.monotonic() - self._checked >= RECHECK

    async def _recheck(self) -> bool:
        """Return whether the user may still be here; forgets topics that are no longer theirs."""
        self._checked = time.monotonic()
        user = await database_sync_to_async(effective_user)(self.scope["user"], self.scope["session"])
        if user is None or impersonated_name(user) != impersonated_name(self.scope["user"]):
            await self.close(LOGGED_OUT if user is None else SEEN_OTHERWISE)
            return False
        self.scope["user"] = user
        self._sees = await database_sync_to_async(visible)(user)
        for text, topic in list(self._topics.items()):
            if not await self._may_watch(topic):
                self._forget(text)
                await self._refuse(text, topic)
        return True
