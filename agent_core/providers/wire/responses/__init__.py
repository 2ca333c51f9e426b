"""OpenAI's Responses format: request body, event stream, items and usage."""
