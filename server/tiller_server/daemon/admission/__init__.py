"""Admission of clients to the daemon: listening socket, handshake and peer check."""
