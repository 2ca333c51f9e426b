"""Runs of a session: the activity slot, the executor, retries, budgets, cancellation and recovery."""
