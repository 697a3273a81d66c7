"""What the database is not to tell whoever reads it: sealed with the installation's key."""

from __future__ import annotations

import base64
import hashlib

from cryptography.fernet import Fernet
from django.conf import settings


def encrypt(text: str) -> str:
    """The text, so that it can be read with the key alone."""
    return _fernet().encrypt(text.encode()).decode()


def decrypt(sealed: str) -> str:
    """What was sealed. Raises cryptography's InvalidToken when it was sealed with another key."""
    return _fernet().decrypt(sealed.encode()).decode()


def _fernet() -> Fernet:
    # The label is part of the key: what older installations sealed is to stay readable.
    digest = hashlib.sha256(b"second factor " + settings.SECRET_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(digest))
