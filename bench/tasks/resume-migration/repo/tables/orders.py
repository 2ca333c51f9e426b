"""The table orders."""

TABLE = "orders"
COLUMNS = ["id INTEGER", "name TEXT"]


def create():
    return "CREATE TABLE " + TABLE + " (" + ", ".join(COLUMNS) + ")"
