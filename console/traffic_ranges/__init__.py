"""Store the expected traffic of destinations, and compare the recent traffic with it."""
