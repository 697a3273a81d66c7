"""brokerctl's verbs for prepared transactions."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Awaitable, Callable

from brokerapp.admin import BrokerAdmin
from brokerapp.management.verbs.declaration import Answer, Subparsers, add_verb

COMMIT, ROLLBACK = "commit-transaction", "rollback-transaction"


def add_transaction_verbs(verbs: Subparsers) -> None:
    """Add these verbs to brokerctl's."""
    add_verb(verbs, "transactions", "list prepared transactions (XA), the oldest first")
    for verb, text in (
        (COMMIT, "commit a prepared transaction in place of its transaction manager"),
        (ROLLBACK, "roll back a prepared transaction in place of its transaction manager"),
    ):
        add_verb(verbs, verb, text).add_argument(
            "transaction", help="id of the transaction, as `transactions` shows it"
        )


async def _transactions(admin: BrokerAdmin, _args: Namespace) -> Answer:
    found = await admin.transactions.prepared()
    lines = [
        f"{each.id}  {each.since.astimezone().isoformat(sep=' ', timespec='seconds')}  {each.client_id}: "
        f"{each.sends} sent, {each.acks} acknowledged, {each.size} bytes"
        for each in found
    ]
    return [each.to_json() for each in found], lines or ["No prepared transactions"]


async def _end(admin: BrokerAdmin, args: Namespace) -> Answer:
    commit = args.verb == COMMIT
    await admin.transactions.end(args.transaction, commit=commit)
    said = "committed" if commit else "rolled back"
    return {"transaction": args.transaction, "outcome": said}, [f"Transaction {args.transaction} {said}"]


TRANSACTION_VERBS: dict[str, Callable[[BrokerAdmin, Namespace], Awaitable[Answer]]] = {
    "transactions": _transactions,
    COMMIT: _end,
    ROLLBACK: _end,
}
