"""The work of a job, step by step."""
