"""Keep the Spark session of each run in progress, and whether it was cancelled, for other processes.

Each run has a file in `spark/runs/`, which is replaced as a whole.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

from brokerapp.errors import RequestRefused
from brokerapp.system import atomic_files
from brokerapp.system.environment import Environment

_KEPT_SECONDS = 24 * 3600
_RUN_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,63}")


class RunRegistry:
    """Runs of one installation."""

    def __init__(self, environment: Environment) -> None:
        self._folder = environment.spark / "runs"

    def record_session(self, run_id: str, session_id: str) -> None:
        """Store the Spark session that executes a run."""
        self._write(run_id, "session", session_id)

    def session_of(self, run_id: str) -> str | None:
        """Return the Spark session that executes a run; None for none."""
        try:
            return self._path(run_id, "session").read_text()
        except FileNotFoundError:
            return None

    def has_run_since(self, since: float) -> bool:
        """Return whether a run that began after this time (seconds since the epoch) is being executed."""
        return any(_modified(each) >= since for each in self._folder.glob("*.session"))

    def cancel(self, run_id: str) -> None:
        """Mark a run as cancelled."""
        self._delete_old()
        self._write(run_id, "cancelled", "")

    def is_cancelled(self, run_id: str) -> bool:
        """Return whether a run was cancelled."""
        return self._path(run_id, "cancelled").exists()

    def clear_session(self, run_id: str) -> None:
        """Delete the session of a run that it no longer executes."""
        self._path(run_id, "session").unlink(missing_ok=True)

    def _write(self, run_id: str, what: str, text: str) -> None:
        atomic_files.make_folder(self._folder)
        atomic_files.replace(self._path(run_id, what), text.encode())

    def _path(self, run_id: str, what: str) -> Path:
        if not _RUN_ID.fullmatch(run_id):
            raise RequestRefused(f"{run_id!r} is not the id of a run: expected letters, digits and hyphens")
        return self._folder / f"{run_id}.{what}"

    def _delete_old(self) -> None:
        if self._folder.is_dir():
            for each in self._folder.iterdir():
                if each.stat().st_mtime < time.time() - _KEPT_SECONDS:
                    each.unlink(missing_ok=True)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # the run has just ended
        return 0.0
