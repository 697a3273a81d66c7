"""The Celery app as beat has it: it says when a task is due, by its name, and needs none of them loaded."""

from console.celery import app

app.conf.imports = ()
