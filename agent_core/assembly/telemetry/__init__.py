"""Telemetry of a process and of its sessions. Loaded only when the user's settings switch it on."""
