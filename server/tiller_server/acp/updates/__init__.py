"""Updates that a client is sent: made of events, live and stored."""
