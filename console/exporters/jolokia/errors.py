"""Define the errors that a Jolokia answer reports, with their HTTP status and Java class."""

from __future__ import annotations

#: Java's exception classes as Jolokia names them in `error_type`.
NO_SUCH_BEAN = "javax.management.InstanceNotFoundException"
NO_SUCH_ATTRIBUTE = "javax.management.AttributeNotFoundException"
ILLEGAL = "java.lang.IllegalArgumentException"
DENIED = "java.lang.Exception"


class BadRequest(Exception):
    """Report input that is not a Jolokia request; answered with HTTP 400."""


class JolokiaError(Exception):
    """Report a failed request with its status and Java exception class."""

    def __init__(self, status: int, error_type: str, sentence: str) -> None:
        super().__init__(f"{error_type} : {sentence}")
        self.status, self.error_type = status, error_type
