"""Test what a web process loads at its start, so that its first visitor does not wait."""

import shutil
import subprocess
import sys

STARTED = """
import asyncio, sys
import console.asgi
from console.ops.broker_host import lifespan

async def start():
    said = asyncio.Queue()
    asked = asyncio.Queue()
    await asked.put({"type": "lifespan.startup"})
    task = asyncio.create_task(lifespan({"type": "lifespan"}, asked.get, said.put))
    assert (await said.get())["type"] == "lifespan.startup.complete"
    loaded = set(sys.modules)
    for each in __import__("threading").enumerate():
        if each.name == "loading":
            each.join()
    print("console.analyses.views.analyses" in loaded, "console.api.composition" in loaded, "pandas" in sys.modules)
    await asked.put({"type": "lifespan.shutdown"})
    await task

asyncio.run(start())
"""


def test_pages_are_loaded_before_a_web_process_says_it_is_ready(tmp_path, migrated):
    shutil.copy(migrated, tmp_path / "console.sqlite3")
    environment = {"SLUICE_DATA": str(tmp_path), "REDIS_URL": f"unix://{tmp_path}/none.sock", "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-c", STARTED]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180)
    assert found.stdout.split() == ["True", "True", "True"], found.stderr[-2000:]
