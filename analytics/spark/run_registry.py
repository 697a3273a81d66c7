"""Keep the Spark session of each run in progress, and whether it was cancelled, for other processes.

Each run has a file in `spark/runs/`, which is replaced as a whole.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

from analytics.archive import atomic_files
from brokerapp.errors import RequestRefused
from brokerapp.system.environment import Environment

_KEPT_SECONDS = 24 * 3600
_RUN_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,63}")


class RunRegistry:
    """Runs of one installation."""

    def __init__(self, environment: Environment) -> None:
        self._folder = environment.spark / "runs"

    def record_session(self, run_id: str, session_id: str) -> None:
        """The run is carried out in this Spark session."""
        self._write(run_id, "session", session_id)

    def session_of(self, run_id: str) -> str | None:
        """Return the Spark session that carries out the run, if one does."""
        try:
            return self._path(run_id, "session").read_text()
        except FileNotFoundError:
            return None

    def has_run_since(self, since: float) -> bool:
        """Whether a Spark session carries out a run that it began after this moment (seconds since the epoch)."""
        return any(_modified(each) >= since for each in self._folder.glob("*.session"))

    def cancel(self, run_id: str) -> None:
        """Nobody wants the run any more."""
        self._forget_old()
        self._write(run_id, "cancelled", "")

    def is_cancelled(self, run_id: str) -> bool:
        """Return whether nobody wants the run any more."""
        return self._path(run_id, "cancelled").exists()

    def clear_session(self, run_id: str) -> None:
        """The session has nothing to do with the run any more."""
        self._path(run_id, "session").unlink(missing_ok=True)

    def _write(self, run_id: str, what: str, text: str) -> None:
        atomic_files.make_folder(self._folder)
        atomic_files.replace(self._path(run_id, what), text.encode())

    def _path(self, run_id: str, what: str) -> Path:
        if not _RUN_ID.fullmatch(run_id):
            raise RequestRefused(f"{run_id!r} is not the id of a run: expected letters, digits and hyphens")
        return self._folder / f"{run_id}.{what}"

    def _forget_old(self) -> None:
        if self._folder.is_dir():
            for each in self._folder.iterdir():
                if each.stat().st_mtime < time.time() - _KEPT_SECONDS:
                    each.unlink(missing_ok=True)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # it ended in this moment
        return 0.0
