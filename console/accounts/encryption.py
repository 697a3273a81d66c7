"""Encrypt secrets in the database with the installation's key."""

from __future__ import annotations

import base64
import hashlib

from cryptography.fernet import Fernet
from django.conf import settings


def encrypt(text: str) -> str:
    """Return the text encrypted with the installation's key."""
    return _fernet().encrypt(text.encode()).decode()


def decrypt(sealed: str) -> str:
    """Return the decrypted text. Raises cryptography's InvalidToken for a text of another key."""
    return _fernet().decrypt(sealed.encode()).decode()


def _fernet() -> Fernet:
    # The label is part of the key: what older installations sealed is to stay readable.
    digest = hashlib.sha256(b"second factor " + settings.SECRET_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(digest))
