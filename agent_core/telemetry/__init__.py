"""Telemetry: traces and metrics with the names of OpenTelemetry, sent by an adapter that is an extra."""
