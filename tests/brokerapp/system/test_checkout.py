"""Test that commands are named as they are entered in a checkout and in an installed package."""

from __future__ import annotations

import subprocess
import sys

import pytest

from brokerapp.management.sluice import VERBS
from brokerapp.system.checkout import PROJECT, command


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_is_named_as_it_is_entered_in_either_place(verb):
    assert command(verb, is_checkout=False) == f"sluice {verb}"
    python, *rest = command(verb, is_checkout=True).split()
    assert python.endswith("python")
    said = subprocess.run([sys.executable, *rest, "--help"], cwd=PROJECT, capture_output=True, text=True)
    assert (said.returncode, f"usage: {' '.join(rest)}" in said.stdout) == (0, True), said
