"""Joins several processes to one broker on one store (decision 14).

`links` connects nodes and knows the members, `membership` joins and leaves, `ownership` lets logs go and come,
`delivery` carries messages of queues and `topics` those of topics between nodes. `assembly` builds all of it.
"""
