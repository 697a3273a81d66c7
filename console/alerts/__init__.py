"""Alerts: rules on numbers, when they fire, what is done then. `rules` decides, `judging` keeps, `sending` tells."""
