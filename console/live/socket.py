"""The live socket: one a browser tab, many topics, latest-value frames with only the cells that changed.

The client sends `{"type": "subscribe", "topic": T, "rows": [...]}`, `{"type": "unsubscribe", "topic": T}` and
`{"type": "visible", "value": false}`. About once a second (less often to a hidden tab) the server sends
`{"type": "frame", "age": SECONDS, "trouble": TEXT, "topics": {T: {CELL: VALUE}}}`, where age says how old the numbers
are; it says no with `{"type": "refused", "topic": T, "reason": TEXT}`. A frame is computed when it is sent, so a slow
socket skips some and misses nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import Any

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer

from console.access import lacking, may, still_here
from console.live.mirror import Mirror, mirror
from console.live.notices import notices
from console.live.topics import CELLS, FROM_DATABASE, RIGHTS, Cells, Topic

logger = logging.getLogger(__name__)

#: Seconds between two frames, to a tab that is seen and to one that is not.
INTERVAL, HIDDEN_INTERVAL = 1.0, 5.0
#: Bounds what one tab may ask for.
MAX_TOPICS, MAX_ROWS = 20, 200
#: Seconds after which a user's rights are looked up again, and runs are read although no notice came.
RECHECK = 30.0
RUNS_RECHECK = 5.0
#: Close code for somebody who is not logged in (any more).
LOGGED_OUT = 4401


class LiveConsumer(AsyncJsonWebsocketConsumer):
    """One browser tab."""

    channel_layer_alias = None  # see notices.py

    async def connect(self) -> None:
        """Let in whoever is logged in."""
        self._topics: dict[str, Topic] = {}
        self._sent: dict[str, Cells] = {}
        self._interval = INTERVAL
        self._wanted = asyncio.Event()  # something is asked for at once
        self._runs_read = 0.0
        self._checked = time.monotonic()
        self._pump: asyncio.Task | None = None
        await self.accept()
        if not self.scope["user"].is_authenticated:
            await self.close(LOGGED_OUT)
            return
        self._mirror: Mirror = await asyncio.to_thread(mirror)
        loop = asyncio.get_running_loop()
        reader = await asyncio.to_thread(notices)
        self._stop_listening = reader.listen(lambda run: loop.call_soon_threadsafe(self._run_changed))
        self._pump = asyncio.create_task(self._send_frames())

    async def disconnect(self, code: int) -> None:
        """The tab is gone."""
        if self._pump:
            self._pump.cancel()
            self._stop_listening()

    async def receive_json(self, content: Any, **kwargs: Any) -> None:
        """What the tab asks for."""
        match content:
            case {"type": "subscribe", "topic": str(text), **rest}:
                await self._subscribe(text, rest.get("rows", []))
            case {"type": "unsubscribe", "topic": str(text)}:
                self._topics.pop(text, None)
                self._sent.pop(text, None)
            case {"type": "visible", "value": bool(is_visible)}:
                self._interval = INTERVAL if is_visible else HIDDEN_INTERVAL
                self._wanted.set()
            case _:
                await self.send_json({"type": "refused", "topic": "", "reason": "This is no request of a live socket."})

    def _run_changed(self) -> None:
        self._runs_read = 0.0
        self._wanted.set()

    # -- subscriptions

    async def _subscribe(self, text: str, rows: Any) -> None:
        is_list = isinstance(rows, list) and len(rows) <= MAX_ROWS and all(isinstance(row, str) for row in rows)
        topic = Topic.parse(text, tuple(rows)) if is_list else None
        if topic is None or (text not in self._topics and len(self._topics) >= MAX_TOPICS):
            await self.send_json({"type": "refused", "topic": text, "reason": "There is no such topic."})
            return
        verb = RIGHTS[topic.name]
        if not await database_sync_to_async(may)(self.scope["user"], verb):
            await self.send_json({"type": "refused", "topic": text, "reason": lacking(verb)})
            return
        self._topics[text] = topic
        self._sent.pop(text, None)
        self._runs_read = 0.0
        self._wanted.set()

    # -- frames

    async def _send_frames(self) -> None:
        while True:
            self._wanted.clear()
            if time.monotonic() - self._checked > RECHECK and not await self._recheck():
                return
            await self.send_json(await self._frame())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), self._interval)

    async def _frame(self) -> dict[str, Any]:
        picture = self._mirror.picture
        topics = {}
        for text, topic in list(self._topics.items()):
            cells = CELLS[topic.name](picture, topic) if topic.name in CELLS else await self._run_cells(topic)
            before = self._sent.get(text, {})
            changed = {name: value for name, value in cells.items() if name not in before or before[name] != value}
            if changed and text in self._topics:
                self._sent[text] = {**before, **changed}
                topics[text] = changed
        age = round(max(0.0, time.time() - picture.at), 1) if picture.at else None
        return {"type": "frame", "age": age, "trouble": picture.trouble, "topics": topics}

    async def _run_cells(self, topic: Topic) -> Cells:
        now = time.monotonic()
        key = str(topic)
        if now - self._runs_read < RUNS_RECHECK and key in self._sent:
            return {}
        cells = await database_sync_to_async(FROM_DATABASE[topic.name])(self.scope["user"], topic)
        self._runs_read = now
        return cells

    async def _recheck(self) -> bool:
        """Whether the user may still be here; forgets topics that are no longer theirs."""
        self._checked = time.monotonic()
        user = await database_sync_to_async(still_here)(self.scope["user"], self.scope["session"])
        if user is None:
            await self.close(LOGGED_OUT)
            return False
        self.scope["user"] = user
        for text, topic in list(self._topics.items()):
            if not await database_sync_to_async(may)(user, RIGHTS[topic.name]):
                del self._topics[text]
                await self.send_json({"type": "refused", "topic": text, "reason": lacking(RIGHTS[topic.name])})
        return True
