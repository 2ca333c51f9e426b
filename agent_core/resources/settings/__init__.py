"""Settings: layers, values, guards and the settings file."""
