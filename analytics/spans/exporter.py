"""Export spans of recorded trace events over OTLP; started as `python -m analytics.spans.exporter`.

A process of its own, beside archiver and node: it reads what they recorded and slows neither down. The position is
written after each request that was delivered. A process that is killed before it wrote sends that request again, with
the same ids.
"""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Protocol

from opentelemetry.sdk.trace import ReadableSpan

from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.trace_stream import TraceStream
from analytics.spans.event_source import EventSource
from analytics.spans.event_spans import EventSpans
from analytics.spans.otlp_delivery import Delivery, OtlpDelivery
from analytics.spans.progress import ExportProgress, read_progress, spans_folder, write_progress
from analytics.spans.settings import SpanSettings
from analytics.spans.traced_messages import MESSAGE_SECONDS, TracedMessages
from brokerapp.errors import ConfigurationRefused, StoreUnavailable
from brokerapp.system import atomic_files
from brokerapp.system.environment import Environment

#: How often the stream is read while it is empty: nodes write once a second, the archiver trims every five seconds.
POLL_SECONDS = 1.0
#: Spans of one request: a megabyte or two, well below the limits of receivers (a collector's is 20 MiB).
REQUEST_SPANS = 2_000
#: Seconds before a request that failed is sent again (each attempt takes up to ten seconds by itself), and before a
#: store that did not answer is asked again.
RETRY_SECONDS = 5.0
#: How often the progress is written while nothing is exported, so that monitors see that this process runs.
ALIVE_SECONDS = 10.0
#: The file with what is remembered of messages, beside the progress.
MESSAGES = "messages.msgpack"

log = logging.getLogger(__name__)


class SpanReceiver(Protocol):
    """Takes spans."""

    def send(self, spans: Sequence[ReadableSpan]) -> Delivery:
        """Send these spans in one request."""


class SpanExport:
    """Exports the spans of one broker's events, a pass at a time."""

    def __init__(
        self,
        source: EventSource,
        settings: SpanSettings,
        receiver: SpanReceiver,
        folder: Path,
        broker: str,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        self._source, self._receiver, self._folder, self._wait = source, receiver, folder, wait
        atomic_files.make_folder(folder)
        self._messages = TracedMessages(settings.sampler)
        self._spans = EventSpans(broker, settings.resource, self._messages)
        self._messages.restore(folder / MESSAGES)
        found = read_progress(folder)
        if found is None:  # what was recorded before spans were wanted is not exported
            offset, ordinal = source.end()
            found = ExportProgress(offset if ordinal else f"{int(time.time() * 1000) - 1}-0", ordinal)
        self._progress = found
        self.is_stopping = lambda: False

    @property
    def progress(self) -> ExportProgress:
        """How far it has come, and what it counted."""
        return self._progress

    def step(self) -> bool:
        """Export what is recorded up to a page of the stream; whether nothing was left. Raises StoreUnavailable."""
        waiting: list[ReadableSpan] = []
        ahead = self._progress
        is_drained = True
        for page in self._source.pages(ahead.offset, ahead.ordinal):
            is_drained = False
            if page.late:
                log.warning("%d events were too old to be exported", page.late)
            if page.lost:
                log.warning("%d batches were gone before they were exported", page.lost)
            waiting += self._spans.of(page.events) if page.events is not None else ()
            ahead = replace(
                ahead, offset=page.offset, ordinal=page.ordinal, late_events=ahead.late_events + page.late,
                lost_batches=ahead.lost_batches + page.lost,
            )  # fmt: skip
            if len(waiting) >= REQUEST_SPANS:
                if not self._deliver(waiting, ahead):
                    return False
                waiting, ahead = [], self._progress
        if waiting or ahead != self._progress:
            self._deliver(waiting, ahead)
        self._messages.forget_before(int((time.time() - MESSAGE_SECONDS) * 1e6))
        if is_drained and (self._progress.lag_seconds or time.time() > self._progress.written_at + ALIVE_SECONDS):
            self._save(replace(self._progress, lag_seconds=0.0))
        return is_drained

    def _deliver(self, spans: list[ReadableSpan], ahead: ExportProgress) -> bool:
        """Send spans until the receiver took or refused them, and keep the position; False where it is to stop."""
        for begin in range(0, len(spans), REQUEST_SPANS):
            part = spans[begin : begin + REQUEST_SPANS]
            while (outcome := self._receiver.send(part)) is Delivery.FAILED:
                self._save(replace(self._progress, lag_seconds=_age(ahead.offset)))
                if self.is_stopping():
                    return False
                self._wait(RETRY_SECONDS)
            if outcome is Delivery.REFUSED:
                log.error("the receiver refused %d spans", len(part))
                ahead = replace(ahead, refused=ahead.refused + len(part))
            else:
                ahead = replace(ahead, exported=ahead.exported + len(part))
        self._save(replace(ahead, lag_seconds=_age(ahead.offset)))
        return True

    def _save(self, progress: ExportProgress) -> None:
        unknown, self._messages.unknown = self._messages.unknown, 0
        unsampled, self._spans.unsampled = self._spans.unsampled, 0
        known = self._progress  # `progress` may be older than what was counted while the receiver was unavailable
        self._progress = replace(
            progress, unknown_contexts=known.unknown_contexts + unknown, unsampled=known.unsampled + unsampled,
            written_at=time.time(),
        )  # fmt: skip
        write_progress(self._folder, self._progress)

    def close(self) -> None:
        """Write what is remembered of messages for the next start."""
        self._messages.save(self._folder / MESSAGES)


def _age(offset: str) -> float:
    return max(0.0, round(time.time() - int(offset.partition("-")[0]) / 1000, 3))


def run(export: SpanExport, stopping: Event) -> None:
    """Export until `stopping` is set."""
    export.is_stopping = stopping.is_set
    while not stopping.is_set():
        try:
            is_drained = export.step()
        except StoreUnavailable as error:
            log.warning("%s; trying again", error)
            stopping.wait(RETRY_SECONDS)
        else:
            stopping.wait(POLL_SECONDS if is_drained else 0)
    export.close()


def main() -> int:
    """Run until SIGTERM or SIGINT."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s spans: %(message)s")
    environment = Environment.read()
    try:
        settings = SpanSettings.read(os.environ, environment.broker_name)
    except ConfigurationRefused as error:
        log.error("%s", error)
        return 1
    folder = spans_folder(environment.data, environment.broker_name)
    atomic_files.make_folder(folder)
    with (folder / "_lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.error("spans are exported by another process, which holds %s", folder)
            return 1
        _serve(environment, settings, folder)
    return 0


def _serve(environment: Environment, settings: SpanSettings, folder: Path) -> None:
    stopping, receiver = Event(), OtlpDelivery(settings.headers)

    def stop(*_args: object) -> None:
        stopping.set()
        Thread(target=receiver.close, daemon=True).start()  # it may wait for a lock that this thread holds

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    stream = TraceStream(environment.redis_url, environment.broker_name)
    archive = BrokerArchive(environment.archive, environment.broker_name)
    try:
        while not stopping.is_set():
            try:
                export = SpanExport(
                    EventSource(stream, archive), settings, receiver, folder, environment.broker_name, stopping.wait
                )
            except StoreUnavailable as error:
                log.warning("%s; trying again", error)
                stopping.wait(RETRY_SECONDS)
            else:
                run(export, stopping)
    finally:
        stream.close()


if __name__ == "__main__":
    sys.exit(main())
