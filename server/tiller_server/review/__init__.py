"""The review bot: a change in, checked findings out."""
