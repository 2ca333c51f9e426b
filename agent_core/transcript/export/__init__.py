"""Export of a session as an HTML or Markdown document."""
