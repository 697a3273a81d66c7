"""A store that does not answer for longer than nodes may be silent: none of them is taken for dead for that."""

import os
import signal
import time

from brokerapp.store.embedded import EmbeddedStore
from tests.nodes.conftest import TIMEOUT_MS, SeveralNodes


def test_when_the_store_answers_again_all_nodes_are_members_still(tmp_path):
    with EmbeddedStore(tmp_path / "store") as store:
        broker = SeveralNodes(store.url)
        try:
            broker.start("a", "b")
            clients = {name: broker[name].client() for name in "ab"}
            os.kill(store.pid, signal.SIGSTOP)
            time.sleep(1.2 * TIMEOUT_MS / 1000)
            os.kill(store.pid, signal.SIGCONT)
            time.sleep(2 * broker["a"].node.membership.period)
            assert broker.members() == {"a", "b"}
            for client in clients.values():
                client.send("/queue/away", "served", persistent="true")
        finally:
            broker.end()
