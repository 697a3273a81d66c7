"""Functions that are compiled for commands of one shape: faster than what encodes and decodes any command."""
