"""The durable state of a chat channel: one SQLite file for each account of a platform."""
