"""The table users."""

TABLE = "users"
COLUMNS = ["id INTEGER", "name TEXT"]


def create():
    return "CREATE TABLE " + TABLE + " (" + ", ".join(COLUMNS) + ")"
