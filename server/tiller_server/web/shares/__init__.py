"""Read-only pages of sessions behind links that expire: previewed, created, listed, revoked, shown."""
