"""Takes SENDs from the client to the store: routing, writing, transactions, schedules."""
