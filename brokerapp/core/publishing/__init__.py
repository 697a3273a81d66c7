"""Takes SENDs from the client to the store: routing, writing, group commit, transactions, schedules."""
