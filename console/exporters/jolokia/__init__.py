"""Serves the broker's numbers and operations as JMX beans by the Jolokia protocol."""
