"""Serve statistics and operations of the broker as JMX beans by the Jolokia protocol."""
