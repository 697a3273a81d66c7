"""The views of SQL statements as Spark frames."""
