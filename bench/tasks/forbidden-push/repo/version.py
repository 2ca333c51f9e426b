"""The version."""

VERSION = "1.3.2"
