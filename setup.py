"""Say what the wheel contains and depends on; `make wheel` builds it.

It contains the three packages of Sluice, the folders `static` and `templates`, and the compiled reader of SENDs where
there is a C compiler. Its dependencies are sections of requirements.txt, which stays the one home of versions.
"""

import re
from pathlib import Path

from setuptools import Extension, find_packages, setup

PACKAGES = ("brokerapp", "analytics", "console")
#: Sections of requirements.txt that each extra adds to the section `broker`.
EXTRAS = {
    "console": ("archive", "console"),
    "analytics": ("archive", "analytics"),
    "all": ("archive", "console", "analytics"),
}
#: Folders at the top of the project, by the package that has their files in the wheel (console/ui/assets.py).
ASSETS = {f"console.assets.{folder}": folder for folder in ("static", "templates")}


def read_requirements() -> dict[str, list[str]]:
    """Return the requirements by section; a section begins with a line `# -- NAME`."""
    sections: dict[str, list[str]] = {}
    for line in Path("requirements.txt").read_text().splitlines():
        if heading := re.match(r"# -- (\w+)", line):
            sections[heading[1]] = []
        elif requirement := line.partition("#")[0].strip():
            sections[next(reversed(sections))].append(requirement)
    return sections


requirements = read_requirements()
setup(
    packages=[*find_packages(include=[f"{each}{below}" for each in PACKAGES for below in ("", ".*")]), *ASSETS],
    package_dir=ASSETS,
    package_data={"brokerapp.store": ["functions/*.lua"], **{package: ["**/*"] for package in ASSETS}},
    include_package_data=False,
    ext_modules=[
        Extension("brokerapp.stomp.compiled_sends", ["brokerapp/stomp/compiled_sends.pyx"], optional=True),
    ],
    install_requires=requirements["broker"],
    extras_require={
        extra: [each for section in sections for each in requirements[section]] for extra, sections in EXTRAS.items()
    },
)
