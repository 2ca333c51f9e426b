"""Reads price lists."""


def parse_row(line):
    """Return the fields of a row."""
    return line.rstrip("\n").split(",")


def parse(text):
    """Return the rows of a list, without empty lines."""
    return [parse_row(line) for line in text.splitlines() if line.strip()]
