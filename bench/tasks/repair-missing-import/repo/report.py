"""Weekly reports of a weather station."""


def load(text):
    """Return the readings of a report as pairs of station and degrees."""
    rows = json.loads(text)
    return [(row["station"], float(row["degrees"])) for row in rows]


def mean(readings):
    if not readings:
        return None
    return math.fsum(degrees for _, degrees in readings) / len(readings)


def warmest(readings):
    return max(readings, key=lambda reading: reading[1])[0]
