"""Permission for tool calls: protected and secret files, the policy and the reading of shell commands."""
