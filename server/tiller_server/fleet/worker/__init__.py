"""The worker process: a slot, its lease, and the steps of jobs."""
