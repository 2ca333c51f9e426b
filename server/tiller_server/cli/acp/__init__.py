"""The command `tiller acp`."""
