"""Changes as unified diffs and git patches."""
