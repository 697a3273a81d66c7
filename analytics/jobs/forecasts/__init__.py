"""The analysis of forecasts and anomalies: its recorded history, and what it finds in it."""
