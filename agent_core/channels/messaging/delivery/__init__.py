"""Delivery of the outbox to a platform: order, rate, retries, running answers."""
