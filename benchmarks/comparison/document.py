"""Writes measured figures into docs/benchmarks.md, with the date, the command and the load of the machine."""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"


class Record:
    """One run of a command; begun before anything is measured."""

    def __init__(self, section: str, page: Path = PAGE) -> None:
        self._section, self._page = section, page
        self._began, self._load = time.localtime(), os.getloadavg()[0]

    def conditions(self) -> str:
        """A sentence that says when, how and beside which load it was measured."""
        module = Path(sys.argv[0]).parent.name if Path(sys.argv[0]).stem == "__main__" else Path(sys.argv[0]).stem
        command = " ".join([module if module == "benchmarks" else f"benchmarks.{module}", *sys.argv[1:]])
        command = command.replace(" --record", "")
        return (
            f"{self._began.tm_mday} {time.strftime('%B %Y, %H:%M', self._began)}, `python -m {command}`, "
            f"load {self._load:.1f} at the start and {os.getloadavg()[0]:.1f} at the end on {os.cpu_count()} cores."
        )

    def write(self, text: str) -> None:
        """Replace what stands between the marks of the section. Raises ValueError without them."""
        marks = re.compile(rf"(<!-- {self._section} -->\n).*?(<!-- end of {self._section} -->)", re.DOTALL)
        page, count = marks.subn(lambda found: f"{found[1]}\n{text}\n\n{found[2]}", self._page.read_text())
        if not count:
            raise ValueError(f"{self._page} has no section {self._section}")
        self._page.write_text(page)
