"""Processes of a workspace: start, input, output, exit and termination of the process tree."""
