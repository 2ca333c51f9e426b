"""Input of a session: submitted prompts, the message queue, deferred messages, slash commands and the system prompt."""
