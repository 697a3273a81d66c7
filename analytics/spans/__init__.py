"""Spans: exports what happened to messages to OpenTelemetry, from recorded trace events (docs/opentelemetry.md)."""
