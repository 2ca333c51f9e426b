"""Anthropic's Messages format: request body and event stream."""
