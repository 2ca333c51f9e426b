"""The scripted model, which plays reference solutions."""
