"""The mark in a data folder that was restored from a backup: what is started there reads it before its store runs."""

from __future__ import annotations

from pathlib import Path

from brokerapp.errors import BackupRefused
from brokerapp.store.restored_mark import RestoredMark

NAME = "restored.json"


def read_mark(data: Path) -> RestoredMark | None:
    """Return the mark of a data folder; None for one that was not restored, or acts as the original."""
    try:
        return RestoredMark.from_json((data / NAME).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BackupRefused(f"{data / NAME} cannot be read: {error}") from None


def write_mark(data: Path, mark: RestoredMark | None) -> None:
    """Replace the mark of a data folder; None: it acts as the original."""
    path = data / NAME
    if mark is None:
        path.unlink(missing_ok=True)
        return
    staged = path.with_name(f".{NAME}.tmp")
    staged.touch(mode=0o600)
    staged.write_text(mark.to_json())
    staged.rename(path)
