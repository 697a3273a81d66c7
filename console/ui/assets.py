"""Find the folders of static files and templates, of a checkout and of an installed package."""

from __future__ import annotations

from pathlib import Path

from brokerapp.system.environment import IS_CHECKOUT, PROJECT

#: Where setup.py puts both folders in the wheel, below the folder of the packages.
INSTALLED = Path("console", "assets")


def asset_folder(name: str) -> Path:
    """Return the folder `static` or `templates`: at the top of a checkout, within an installed package."""
    return PROJECT / name if IS_CHECKOUT else PROJECT / INSTALLED / name
