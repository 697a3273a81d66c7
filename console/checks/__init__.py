"""Check an installation with a console: the broker's checks, and database, Spark, workers, mail and settings."""
