"""Nodes: several processes that are one broker, on one store. Decision 14 says how.

`members` decides where each log is at home, `links` carries what nodes tell each other (`words`), `homes` moves logs,
`guests` serves consumers of other nodes, `abroad` the own clients' consumers at other nodes, `known` makes all nodes
know what one of them begins, `doubts` counts anew what nobody could count.
"""
