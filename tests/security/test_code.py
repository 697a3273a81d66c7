"""What no code of the project does: run text, call shells, hold passwords, or load what others serve."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from brokerapp.system.environment import PROJECT

#: Rules of ruff (flake8-bandit) about code that is dangerous whatever it is for.
RULES = (
    "S102,S105,S106,S107,S108,S113,S202,S301,S302,S304,S305,S306,S307,S308,S323,S324,S501,S502,S503,S504,S505,S506,"
    "S508,S509,S601,S602,S604,S605,S608,S609,S611,S612,S701,S702,S704"
)
#: What they find that is meant so, by file and rule, with the reason.
MEANT = {
    ("brokerapp/openwire/encoding/source.py", "S102"): "compiles codecs from the table of OpenWire's types, no input",
    ("analytics/jobs/sql_query.py", "S608"): "a statement of an analyst, of which the parser let pass what is allowed",
    ("analytics/rollups/queries.py", "S608"): "columns are constants of the module, values are parameters",
    ("analytics/rollups/store.py", "S608"): "columns are constants of the module, values are parameters",
    ("console/ops/processes.py", "S323"): "asks the console of this machine, whose certificate names another host",
    ("console/accounts/views/users.py", "S105"): "the name of a key in the session",
}
#: Functions of browsers that run text, or ask for what a page of figures has no use for.
_RUNS_TEXT = re.compile(r"\beval\(|new Function\(|\bdocument\.write|insertAdjacentHTML|setTimeout\(\s*[\"'`]")
_DEVICES = re.compile(r"getUserMedia|geolocation|navigator\.(bluetooth|usb|serial|contacts)|Notification\.request")
_LOADED = re.compile(r"<(?:script|link|img|iframe|object|embed)\b[^>]*?(?:src|href)=[\"'](?:https?:)?//", re.IGNORECASE)


def texts(folder: str, ending: str) -> dict[str, str]:
    """Return the files of a folder by path."""
    paths = sorted((PROJECT / folder).rglob(f"*{ending}"))
    assert paths
    return {str(path.relative_to(PROJECT)): path.read_text() for path in paths}


def found_in(files: dict[str, str], pattern: re.Pattern[str]) -> list[str]:
    """Return each place in which the pattern is found."""
    return [f"{path}: {found[0]}" for path, text in files.items() for found in pattern.finditer(text)]


def test_no_code_calls_what_runs_text_or_shells_or_has_a_password_in_it():
    command = [str(Path(sys.executable).with_name("ruff")), "check", "--isolated", "--select", RULES, "--ignore-noqa"]
    done = subprocess.run(
        [*command, "--output-format", "concise", "brokerapp", "console", "analytics", "manage.py"],
        cwd=PROJECT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if re.match(r"\S+\.py:\d", line)]
    found = {(line.partition(":")[0], line.split()[1]): line for line in lines}
    assert [line for place, line in found.items() if place not in MEANT] == []
    assert set(MEANT) <= set(found), "what is no longer found is taken off the list"


def test_no_template_turns_escaping_off():
    found = found_in(texts("templates", ".html"), re.compile(r"\|\s*safe\b|autoescape off|\|\s*safeseq\b"))
    assert found == ["templates/ninja/swagger.html: |safe"], "settings of the viewer, which are fixed, as JSON"


def test_no_script_of_a_page_runs_text():
    assert found_in(texts("static", ".js"), _RUNS_TEXT) == []


def test_no_script_of_a_page_asks_for_a_device():
    assert found_in(texts("static", ".js"), _DEVICES) == []


def test_pages_load_scripts_and_styles_from_the_console_alone():
    assert found_in(texts("templates", ".html"), _LOADED) == []
    assert found_in(texts("static", ".css"), re.compile(r"@import|url\([\"']?(?:https?:)?//")) == []
