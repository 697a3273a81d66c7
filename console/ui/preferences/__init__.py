"""What users choose for themselves: settings, time zone and favourites."""
