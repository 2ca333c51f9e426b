"""A simple checksum."""
