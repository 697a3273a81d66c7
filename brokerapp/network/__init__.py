"""Networks of brokers: bridges that move messages from this broker to others, as far as those have consumers for them.

A bridge has two links, both of which speak STOMP: one to the broker that has the messages, one to the broker that wants
them; the broker's own link is a pipe in memory. Demand is read from consumer advisories (demand.py), so that either end
may be an ActiveMQ.
"""
