"""Definitions in templates: what they are called."""

from __future__ import annotations

from django import template

from console.routing.changes import id_of
from console.routing.facts import label_of, title_of

register = template.Library()

for _filter in (id_of, label_of, title_of):
    register.filter(_filter.__name__, _filter)
