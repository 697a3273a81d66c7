"""Prepare once what each process of a run would otherwise do again by itself.

Modules are compiled, those of tests with asserts that tell what they saw, and the constants found in our modules that
hypothesis tries. For one process that takes as long as the tests of a whole folder, and a run has several.
"""

from __future__ import annotations

import compileall
import multiprocessing
import os
from pathlib import Path
from types import ModuleType

import pytest
from _pytest.assertion import rewrite
from hypothesis.internal.constants_ast import constants_from_module

from brokerapp.system.checkout import PROJECT

#: Folders with modules of ours.
OURS = ("analytics", "benchmarks", "brokerapp", "console", "examples")


def prepare(config: pytest.Config) -> None:
    """Do it, with all processors. What cannot be compiled is left to who imports it, and tells."""
    largest = sorted(_modules(), key=lambda each: each.stat().st_size, reverse=True)
    count = os.cpu_count() or 1
    sharing = multiprocessing.get_context("fork")
    shares = [sharing.Process(target=_prepare, args=(config, largest[part::count])) for part in range(count)]
    for each in shares:
        each.start()
    for each in shares:
        each.join()
        assert each.exitcode == 0, "preparing the tests' modules failed; why stands above"


def _modules() -> list[Path]:
    return [each for folder in (*OURS, "tests") for each in (PROJECT / folder).rglob("*.py")]


def _prepare(config: pytest.Config, modules: list[Path]) -> None:
    for each in modules:
        if each.name == "conftest.py" or any(map(each.match, config.getini("python_files"))):
            _rewrite(config, each)
        else:
            compileall.compile_file(each, quiet=2)
        if each.is_relative_to(PROJECT / "tests"):
            continue
        module = ModuleType(each.stem)
        module.__file__ = str(each)
        constants_from_module(module)  # it keeps what it finds in .hypothesis


def _rewrite(config: pytest.Config, module: Path) -> None:
    """As pytest does when it imports the module, and finds nothing that it kept before."""
    kept = rewrite.get_cache_dir(module) / f"{module.stem}{rewrite.PYC_TAIL}"
    if rewrite._read_pyc(module, kept) is not None:
        return
    rewrite.try_makedirs(kept.parent)
    try:
        digest, code = rewrite._rewrite_test(module, config)
    except (SyntaxError, UnicodeDecodeError):
        return
    rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, digest, kept)
