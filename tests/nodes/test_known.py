"""What all nodes must know, and for whom one waits until they do."""

from types import SimpleNamespace

from brokerapp.nodes.known import Known
from brokerapp.nodes.words import Word


def test_nobody_waits_for_a_node_that_left_before_the_logs_followed():
    said, answers = [], []
    known = Known(None, SimpleNamespace(tell=lambda session, *_: said.append(session)))
    known.gone("left")
    known.ask(["left", "there"], Word.LOGS, ([],), answers.append)
    assert said == ["there"]
    known.answered("there", 1, "")
    known.ask(["left"], Word.LOGS, ([],), answers.append)
    assert answers == ["", ""]
