"""The long connection: frames, parts of events, the endpoint, acknowledgements."""
