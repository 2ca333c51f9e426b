"""Bytes of one connection: message framing, the bounded outbox, standard input and output, progress tokens."""
