"""Settings of the service."""

import os


def token():
    return os.environ["SERVICE_TOKEN"]
