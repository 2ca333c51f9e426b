"""Analysis of command lines and programs for the policy."""
