"""Every key name, built here and nowhere else. All keys of a broker carry one hash tag: its name."""


def trace_key(broker: str) -> str:
    """The stream of trace batches."""
    return f"{{{broker}}}:trace"
