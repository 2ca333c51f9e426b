"""Access of tools to the web: addresses, requests with limits, pages as Markdown, search."""
