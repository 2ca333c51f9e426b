"""Model calls of a review: prompts, chunks, passes, report tool and budget."""
