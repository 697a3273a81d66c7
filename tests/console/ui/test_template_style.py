"""Test that no line of a template is too long."""

import pytest

from brokerapp.system.environment import PROJECT

TEMPLATES = PROJECT / "templates"
MAX_LINE = 160


def long_lines(folder):
    return [
        f"{path.relative_to(TEMPLATES)}:{number}: {len(line)} characters"
        for path in sorted((TEMPLATES / folder).rglob("*.html"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > MAX_LINE
    ]


FOLDERS = sorted(path.name for path in TEMPLATES.iterdir() if path.is_dir())


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_line_of_a_template_is_too_long(folder):
    assert long_lines(folder) == []
