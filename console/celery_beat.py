"""Define the Celery app for beat, which sends tasks by name and imports none of them."""

from console.celery import app

app.conf.imports = ()
