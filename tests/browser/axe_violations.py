"""Find accessibility violations of a page with axe."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

#: What is judged: WCAG 2.2 A and AA, and axe's own good practice.
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
COLOURS = {"runOnly": ["color-contrast"]}
#: Said of axe's findings: of what is in order it need not list every element, nor think of a selector that leads to
#: each, which takes it most of the time.
BRIEFLY = {"resultTypes": ["violations"], "selectors": False}
#: What of a page is judged: all, or what is not the same on each.
WHOLE: dict = {"include": [["html"]]}
OWN: dict = WHOLE | {"exclude": [[".nav"], ["header.bar"]]}
AXE = Axe()
#: Nothing comes of it on a page without axe.
_ASK = "([part, options]) => window.axe ? axe.run(part, options) : null"


def axe_violations(page: Page, options: dict = RULES, part: dict = WHOLE) -> str:
    """What axe says against the page, or a part of it, as it stands; nothing where all is well."""
    asked = [part, options | BRIEFLY]
    if (said := page.evaluate(_ASK, asked)) is None:
        page.evaluate(AXE.axe_script)
        said = page.evaluate(_ASK, asked)
    found = said["violations"]
    return "\n".join(
        f"{each['id']}: {each['help']}: {[node['html'][:160] for node in each['nodes'][:4]]}" for each in found
    )


def assert_accessible(page: Page) -> None:
    """Fail unless axe finds nothing on the page as it stands, in light and in dark."""
    page.emulate_media(reduced_motion="reduce")
    for scheme, rules in (("light", RULES), ("dark", COLOURS)):
        page.emulate_media(color_scheme=scheme)
        found = axe_violations(page, rules)
        assert not found, f"{page.url}, {scheme}: {found}"
