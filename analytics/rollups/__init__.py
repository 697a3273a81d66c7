"""Counters by destination, consumer and minute in SQLite, and the queries that charts over days make of them."""
