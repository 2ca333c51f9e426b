"""OpenAI's Chat Completions format: chunk stream, tool calls, reasoning and usage."""
