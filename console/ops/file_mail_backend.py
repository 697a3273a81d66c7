"""Write emails to files (.eml) when no mail server is configured."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend
from django.utils import timezone


class EmailBackend(BaseEmailBackend):
    """Write emails to the folder EMAIL_FILE_PATH; file names sort by time."""

    def __init__(self, *args: Any, file_path: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._folder = Path(file_path or settings.EMAIL_FILE_PATH)

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        """Write the emails; return their number. Raises OSError."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for each in email_messages:
            name = f"{timezone.now():%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:8]}.eml"
            (self._folder / name).write_bytes(each.message().as_bytes())
        return len(email_messages)
