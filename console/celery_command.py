"""Run Celery's command line: `python -m console.celery_command -A console.celery worker`.

Celery looks for modules in the current directory first. An installed package may be started anywhere, also beside
folders with the names of its packages: these are imported before.
"""

from __future__ import annotations

from celery.__main__ import main

import analytics
import console.celery

assert analytics
assert console.celery.app

if __name__ == "__main__":
    main()
