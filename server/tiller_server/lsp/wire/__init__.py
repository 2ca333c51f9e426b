"""The wire vocabulary: every shape of the `agent/…` protocol and its tables, one module per family of messages."""
