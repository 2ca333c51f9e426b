"""Cards: their JSON, the Markdown in them, and answers that grow in them."""
