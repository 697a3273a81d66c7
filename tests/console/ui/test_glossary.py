"""Hold the words of pages, emails, API and command line to docs/glossary.md."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from brokerapp.system.environment import PROJECT

GLOSSARY = PROJECT / "docs" / "glossary.md"
TEMPLATES, PYTHON = "templates", ("console", "analytics", "brokerapp")

#: Folders whose words are not yet those of the glossary. The list only gets shorter.
EXEMPT = frozenset(
    {
        "templates/messages",
    }
)

#: Texts that may contain such a word, with the reason.
EXCEPTIONS = {
    "brokerapp/core/publishing/scheduled_jobs.py": {"is gone"},  # reasons of drops, which traces contain
    "brokerapp/core/redelivery/stale_nonpersistent.py": {"is gone"},
    "brokerapp/nodes/delivery/inbound_consumers.py": {"is gone"},  # a reason of redeliveries, which traces contain
    "brokerapp/openwire/encoding/loose_decoding.py": {"is none"},  # source code of functions that are compiled
    "brokerapp/openwire/encoding/loose_encoding.py": {"is none"},
    "brokerapp/openwire/encoding/tight_encoding.py": {"is none"},
    "brokerapp/openwire/shapes/encoding.py": {"is none"},
    "analytics/model/measures.py": {"is gone"},  # a reason of drops as the broker records it
    "console/accounts/login.py": {"log in", "log out"},  # actions of audit entries, which are stored
    "console/accounts/oidc.py": {"log in"},
    "console/routing/drafts/actions.py": {"in force"},  # actions of remarks, which are stored
    "console/templatetags/routing.py": {"in force"},
    "console/audit/retention.py": {"audit trail"},  # the object of audit entries, which is stored
    "console/audit/search/views.py": {"audit trail"},
}

#: Of a template: what is shown, without tags, variables and comments; and attributes that are read.
_COMMENT = re.compile(r"\{% comment %\}.*?\{% endcomment %\}|\{#.*?#\}|<(script|style).*?</\1>", re.DOTALL)
_READ = re.compile(r'(?:title|aria-label|placeholder|alt|data-busy)="((?:\{[{%].*?[}%]\}|[^"])*)"')
_ARGUMENT = re.compile(r"\{% (?:card|form_row|empty_state|table_head|confirm|right|tab_link) (.*?)%\}")
_CODE = re.compile(r"\{%.*?%\}|\{\{.*?\}\}|<[^>]*>", re.DOTALL)


@cache
def banned():
    """A pattern of the phrases in the last table of the glossary."""
    table = GLOSSARY.read_text().rpartition("| Do not write |")[2].splitlines()[2:]
    phrases = [phrase.strip() for line in table if line for phrase in line.split("|")[1].split(",")]
    return re.compile(r"(?<![\w-])(?:" + "|".join(map(re.escape, phrases)) + r")(?![\w-]| longer)", re.IGNORECASE)


def shown_by_template(text):
    text = _COMMENT.sub(" ", text)
    yield from _READ.findall(text)
    yield from (label for arguments in _ARGUMENT.findall(text) for label in re.findall(r'"([^"]*)"', arguments))
    yield _CODE.sub("\0", text)


def strings_of(text):
    """The strings of a module but its docstrings; of an f-string what stands between the values."""
    tree = ast.parse(text)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def findings(path):
    read = shown_by_template if path.suffix == ".html" else strings_of
    for text in read(path.read_text()):
        for found in banned().finditer(" ".join(text.split())):
            if found[0].lower() not in EXCEPTIONS.get(str(path.relative_to(PROJECT)), ()):
                around = found.string[max(0, found.start() - 30) : found.end() + 30]
                yield f"{path.relative_to(PROJECT)}: {found[0]!r} in {around!r}"


def files():
    yield from sorted((PROJECT / TEMPLATES).rglob("*.html"))
    for package in PYTHON:
        yield from (path for path in sorted((PROJECT / package).rglob("*.py")) if "migrations" not in path.parts)


def folder_of(path: Path) -> str:
    """The feature that a file belongs to: two folders deep, the root of a package for the modules there."""
    parts = path.relative_to(PROJECT).parts
    return "/".join(parts[: min(2, len(parts) - 1)])


@cache
def found_by_folder():
    found = {}
    for path in files():
        found.setdefault(folder_of(path), []).extend(findings(path))
    return found


def test_no_text_has_a_word_that_the_glossary_rules_out():
    assert [each for folder, found in found_by_folder().items() if folder not in EXEMPT for each in found] == []


@pytest.mark.parametrize("folder", sorted(EXEMPT))
def test_a_folder_is_exempt_only_as_long_as_it_has_such_a_word(folder):
    assert found_by_folder().get(folder), f"remove {folder} from EXEMPT"


def test_a_word_is_found_wherever_it_is_shown():
    template = '<p title="Take it away: nobody">{% confirm label="Log in" %}{# nobody #}in force{{ nobody }}</p>'
    assert [found[0] for text in shown_by_template(template) for found in banned().finditer(text)] == [
        "nobody", "Log in", "in force",
    ]  # fmt: skip
