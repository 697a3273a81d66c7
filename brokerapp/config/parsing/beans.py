"""Reads `<beans>`: elements next to the broker, in the file itself and in imported ones.

`<import resource="..."/>` is followed as in Spring: a relative name is relative to the importing file, `classpath:` is
the folder of the first file, unreadable files and circular imports are refused, and the imported elements replace the
import. Only local files are imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from brokerapp.config.parsing.broker_config import ImportOutcome
from brokerapp.config.parsing.document import Element, read_document
from brokerapp.config.parsing.property_files import is_configurer, read_configurer
from brokerapp.errors import ConfigurationRefused

#: Files one configuration may import, those of its imports included: no circle is needed to make endlessly many.
MAX_IMPORTS = 100

#: Parts of ActiveMQ that are set up in files of their own, which a configuration often names and rarely brings along.
_ELSEWHERE = {"jetty": "web pages are served by the console", "camel": "Camel is not supported"}
_NOTHING = "does not configure a broker"
_NOT_READ = "other files are not read: import them separately"


def properties_of(root: Element) -> dict[str, str]:
    """Return the properties that the beans of a file define."""
    found: dict[str, str] = {}
    for each in filter(is_configurer, _beans_of(root, [])):
        found |= read_configurer(each)
    return found


#: What such a bean does in an ActiveMQ, and what is done instead.
_PLACEHOLDERS = (
    "placeholders are replaced by environment variables (${mail.host} by MAIL_HOST), because there are no Java system"
    " properties"
)


def broker_of(root: Element) -> Element:
    """Return the `<broker>` among the beans of a file, and report the others."""
    broker = None
    for each in _beans_of(root, []):
        if each.tag == "broker":
            if broker is not None:
                raise each.refused(f"duplicate <broker>: the first is in {broker.place}")
            broker = each
        elif is_configurer(each):
            each.note(ImportOutcome.ADAPTED, _PLACEHOLDERS)
            read_configurer(each)
        elif each.tag == "camelContext":
            each.note(ImportOutcome.IGNORED, _ELSEWHERE["camel"])
        elif each.tag != "description":
            each.note(ImportOutcome.IGNORED, "only <broker> is supported")
    if broker is None:
        raise root.refused("<broker> is missing")
    return broker


def _beans_of(root: Element, imported: list[Path]) -> Iterator[Element]:
    """Return the elements directly under the root, those of imported files in place of their import."""
    for child in root.children:
        if child.tag == "import" and root.tag == "beans":
            yield from _imported(child, imported)
        else:
            yield child


def _imported(element: Element, imported: list[Path]) -> Iterator[Element]:
    resource = element.need("resource").strip()
    elsewhere = next((why for part, why in _ELSEWHERE.items() if part in resource), None)
    if element.load_context.folder is None:
        element.note(ImportOutcome.IGNORED, f"{resource}: {elsewhere or _NOT_READ}")
        return
    try:
        path = element.load_context.path(resource)
        if elsewhere is not None and not path.exists():
            element.note(ImportOutcome.IGNORED, f"{resource}: {elsewhere}")
            return
        root = _document(element, resource, path, imported)
    except ConfigurationRefused as wrong:
        raise element.refused(str(wrong)) from wrong
    beans = list(_beans_of(root, imported))
    if any(each.tag == "broker" or is_configurer(each) for each in beans):
        element.note(ImportOutcome.TAKEN, resource)
        yield from beans
    else:
        element.note(ImportOutcome.IGNORED, f"{resource}: {elsewhere or _NOTHING}")


def _document(element: Element, resource: str, path: Path, imported: list[Path]) -> Element:
    if path in element.load_context.importing:
        raise ConfigurationRefused(f"{resource} imports itself, directly or indirectly")
    if len(imported) >= MAX_IMPORTS:
        raise ConfigurationRefused(f"a configuration may import at most {MAX_IMPORTS} files")
    imported.append(path)
    text = element.load_context.read_bytes(resource)
    root = read_document(text, element.load_context.of_import(resource, path), element.report)
    if root.tag != "beans":
        raise root.refused("the root of an imported file must be <beans>")
    return root
