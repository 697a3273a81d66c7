"""Keep how far the export of spans has come, and what it counted, in a file that survives every end of the process.

SLUICE_DATA/spans/broker=B/progress.json      ExportProgress, replaced after each request that was delivered
SLUICE_DATA/spans/broker=B/messages.msgpack   the messages remembered (traced_messages.py), written at a stop
SLUICE_DATA/spans/broker=B/_lock              held by the exporter
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote

from analytics.archive.stream_ids import START
from brokerapp.system import atomic_files

_PROGRESS = "progress.json"


@dataclass(frozen=True, slots=True)
class ExportProgress:
    """How far the export has come. Counts are since the first start."""

    offset: str = START  #: id of the last stream entry whose spans were exported or dropped
    ordinal: int = 0  #: its number among all entries ever added to the stream
    exported: int = 0  #: spans that the receiver accepted
    refused: int = 0  #: spans that the receiver refused for good
    late_events: int = 0  #: events dropped because they were too old when their turn came
    lost_batches: int = 0  #: entries of the stream that were gone, and not in the archive
    unknown_contexts: int = 0  #: messages whose trace context was not known
    unsampled: int = 0  #: spans that the sampler did not select
    lag_seconds: float = 0.0  #: age of the newest exported entry; 0 when all is exported
    written_at: float = 0.0  #: seconds since the epoch


def spans_folder(data: Path, broker: str) -> Path:
    """Return the folder of the export of one broker."""
    return data / "spans" / f"broker={quote(broker, safe='')}"


def read_progress(folder: Path) -> ExportProgress | None:
    """Read the progress; None where spans were never exported."""
    try:
        fields = json.loads((folder / _PROGRESS).read_bytes())
    except FileNotFoundError:
        return None
    return ExportProgress(**{name: fields[name] for name in ExportProgress.__dataclass_fields__ if name in fields})


def write_progress(folder: Path, progress: ExportProgress) -> None:
    """Replace the progress."""
    atomic_files.replace(folder / _PROGRESS, json.dumps(asdict(progress)).encode())
