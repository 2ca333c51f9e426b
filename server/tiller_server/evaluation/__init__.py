"""Evaluation: runs an agent on tasks with known solutions and judges what it did by tests that it cannot see."""
