"""The table items."""

TABLE = "items"
COLUMNS = ["id INTEGER", "name TEXT"]


def create():
    return "CREATE TABLE " + TABLE + " (" + ", ".join(COLUMNS) + ")"
