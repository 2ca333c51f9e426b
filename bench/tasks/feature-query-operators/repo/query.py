"""Filters of records."""


def parse(text):
    """Return a function that tells whether a record fits a filter."""
    conditions = []
    for word in text.split():
        field, found, value = word.partition("=")
        if not found or not field:
            raise ValueError(f"not a condition: {word!r}")
        conditions.append((field, value))

    def fits(record):
        return all(str(record.get(field)) == value for field, value in conditions)

    return fits
