"""Event streams of sessions to clients: encoding, subscriptions with flow control, and the replay cache."""
