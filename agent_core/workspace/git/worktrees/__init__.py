"""Git worktrees for isolated work, which never lose anything that nobody else has (decision 0097)."""
