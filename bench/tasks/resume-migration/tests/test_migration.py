import sqlite3
import unittest
from importlib import import_module


class MigrationTest(unittest.TestCase):
    def create(self, name):
        database = sqlite3.connect(":memory:")
        self.addCleanup(database.close)
        statement = import_module(f"tables.{name}").create()
        database.execute(statement)
        database.execute(statement)
        with self.assertRaises(sqlite3.IntegrityError):
            database.execute(f"INSERT INTO {name} VALUES (1, NULL)")
        database.execute(f"INSERT INTO {name} VALUES (1, 'a')")
        with self.assertRaises(sqlite3.IntegrityError):
            database.execute(f"INSERT INTO {name} VALUES (1, 'b')")

    def test_users(self):
        self.create("users")

    def test_orders(self):
        self.create("orders")

    def test_items(self):
        self.create("items")
