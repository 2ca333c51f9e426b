"""Permission requests and questions at a client that are answered in dialogs."""
