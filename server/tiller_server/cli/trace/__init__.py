"""Recording, replay and comparison of LSP traces for `tiller trace`."""
