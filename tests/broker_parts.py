"""Build single parts of the broker, with fakes of the parts that they use."""

import inspect
from types import SimpleNamespace

#: Fields of BrokerContext.
CONTEXT = ("name", "session", "settings", "timers", "commits", "tracer", "counters")


def part_of(part: type, **ports):
    """Make a part with these ports and fields of the context; ports that are not given have nothing."""
    context = SimpleNamespace(**{each: ports.pop(each, None) for each in CONTEXT})
    wanted = inspect.signature(part).parameters
    return part(**{each: {"context": context, **ports}.get(each, SimpleNamespace()) for each in wanted})
