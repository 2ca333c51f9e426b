"""Slack as a chat platform, over its Socket Mode and its Web API."""
