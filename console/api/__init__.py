"""The REST API: all that the console does, for programs, described by OpenAPI."""
