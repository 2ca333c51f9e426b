"""The known providers and models: built-in catalogue, models.json, and local servers."""
