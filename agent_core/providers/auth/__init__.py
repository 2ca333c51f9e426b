"""Credentials of providers: API keys, auth.json, the keyring and OAuth."""
