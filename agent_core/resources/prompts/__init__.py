"""Skills and prompt templates."""
