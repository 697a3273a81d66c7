"""Check passwords that people choose: long enough, not too long, and none that many others have."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError

#: Characters of a password: a dozen withstands guessing with a stolen database; more than 128 only cost time to hash.
MIN_LENGTH, MAX_LENGTH = 12, 128

_VALIDATORS = "django.contrib.auth.password_validation"


class MaximumLengthValidator:
    """Refuse passwords of more than MAX_LENGTH characters."""

    def validate(self, password: str, user: Any = None) -> None:
        """Raise ValidationError for a password that is too long."""
        if len(password) > MAX_LENGTH:
            raise ValidationError(f"The password is too long. It may have at most {MAX_LENGTH} characters.")

    def get_help_text(self) -> str:
        """Return the rule."""
        return f"Your password may have at most {MAX_LENGTH} characters."


#: The rules in Django's form. No rule says which characters a password must have: length is what counts.
VALIDATORS = [
    {"NAME": f"{_VALIDATORS}.MinimumLengthValidator", "OPTIONS": {"min_length": MIN_LENGTH}},
    {"NAME": f"{__name__}.MaximumLengthValidator"},
    {"NAME": f"{_VALIDATORS}.CommonPasswordValidator"},
    {"NAME": f"{_VALIDATORS}.UserAttributeSimilarityValidator"},
]
