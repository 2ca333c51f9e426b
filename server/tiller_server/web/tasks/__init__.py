"""Tasks for scripts: one prompt each, created, listed and cancelled over plain HTTP; their OpenAPI document."""
