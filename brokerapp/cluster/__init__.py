"""Clusters: brokers with stores of their own that serve clients as one, as Open MQ has them.

Each broker has a link to each other one of a list. A consumer's home broker consumes for it at all of them, so that a
message stays with the broker it was sent to until somebody, anywhere, has acknowledged it. What operators make is made
on all brokers, through the record of one of them, the master. See docs/clusters.md.
"""
