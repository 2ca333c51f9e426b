"""Workspaces of other machines and of containers: the ports `Files` and `Processes` over one command prefix."""
