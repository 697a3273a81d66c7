"""Test where an installation without SLUICE_DATA keeps its data."""

from pathlib import Path

import pytest

from brokerapp.system.checkout import PROJECT
from brokerapp.system.environment import Environment, default_data_directory


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "~/.local/share/sluice"),
        ({"XDG_DATA_HOME": "/srv/data"}, "/srv/data/sluice"),
        ({"XDG_DATA_HOME": "relative"}, "~/.local/share/sluice"),  # which its specification says to ignore
    ],
)
def test_an_installed_package_uses_the_data_folder_of_its_user(variables, expected):
    assert default_data_directory(variables, is_checkout=False) == Path(expected).expanduser()


@pytest.mark.parametrize("variables", [{}, {"SLUICE_DATA": ""}, {"XDG_DATA_HOME": "/srv/data"}])
def test_a_checkout_keeps_its_data_in_its_own_folder(variables):
    assert Environment.read(variables).data == PROJECT / "var"
