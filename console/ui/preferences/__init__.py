"""Store what users choose for themselves: display settings, time zone and favorites."""
