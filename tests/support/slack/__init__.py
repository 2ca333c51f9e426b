"""A platform that answers as Slack does, on loopback."""
