"""Google's Gemini format: request body, tool schemas and chunk stream."""
