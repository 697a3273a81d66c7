"""The console as an app of Django: what it listens to."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db import transaction
from django.db.models.signals import m2m_changed, post_delete, post_save


class ConsoleConfig(AppConfig):
    """Connects what others tell with what the console records, and changed rights with the sockets they are for."""

    name = "console"

    def ready(self) -> None:
        """Listen to operators without a browser, and to assignments, groups of users and accounts."""
        from django.contrib.auth import get_user_model

        from brokerapp.management.operations import operated
        from console import operations
        from console.models import Assignment

        operated.connect(operations.record, dispatch_uid="console")
        user = get_user_model()
        for signal in (post_save, post_delete):
            signal.connect(_changed, sender=Assignment, dispatch_uid=f"rights {signal}")
        post_save.connect(_saved, sender=user, dispatch_uid="account")
        m2m_changed.connect(_changed, sender=user.groups.through, dispatch_uid="groups")


def _saved(sender: type, created: bool, update_fields: Any = None, **_kwargs: Any) -> None:
    """A login writes an account too, but only its own time."""
    if not created and set(update_fields or ()) != {"last_login"}:
        _changed(sender)


def _changed(sender: type, **_kwargs: Any) -> None:
    from console.live.notices import rights_changed

    transaction.on_commit(rights_changed)
