"""Values of the broker: they parse, print and compare, and do no I/O."""

from typing import Any

#: A value of a JSON document. Its structure depends on the document: each reader checks what it uses.
JsonValue = Any
JsonObject = dict[str, Any]
