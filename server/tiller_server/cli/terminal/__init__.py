"""Terminal input and output of the commands: streams, text, Markdown, status area and prompts."""
