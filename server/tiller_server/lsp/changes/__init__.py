"""Display of agent changes and review findings in an editor."""
