"""Run the processes of an installation: supervisor, broker host, settings and demo."""
