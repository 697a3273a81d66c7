"""The message broker: values, decisions, storage and protocol. Importable without Django, Celery and Spark."""
