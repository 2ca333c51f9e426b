import unittest
from pathlib import Path

from mail.farewell import farewell
from mail.reminder import reminder
from mail.welcome import welcome

FOLDER = Path(__file__).parents[1] / "mail"


class MailTest(unittest.TestCase):
    def test_welcome(self):
        self.assertEqual(
            welcome("Ada"),
            "Dear Ada,\n\nWe are glad that you joined us. Bring\nyour boots to the first meeting.\n\nThe Garden Club\n",
        )

    def test_reminder(self):
        self.assertIn("due in 5 days", reminder("Ada", 5))

    def test_farewell(self):
        self.assertTrue(farewell("Ada").endswith("\n\nThe Garden Club\n"))

    def test_letter_is_shared(self):
        from mail.layout import letter

        self.assertEqual(letter("Bob", "x"), "Dear Bob,\n\nx\n\nThe Garden Club\n")

    def test_no_copy_is_left(self):
        for name in ("welcome", "reminder", "farewell"):
            text = (FOLDER / f"{name}.py").read_text("utf-8")
            self.assertNotIn("textwrap", text)
            self.assertNotIn("TEAM", text)
