"""How telemetry is sent: OTLP over HTTP, with libraries that the extra `otel` brings."""
