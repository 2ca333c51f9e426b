"""Sandbox backends: bubblewrap, Landlock, Seatbelt and their parts."""
