"""Overview, chart and depth pages."""
