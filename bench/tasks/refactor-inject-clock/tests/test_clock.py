import unittest

from reminders import Reminders


class ReminderTest(unittest.TestCase):
    def test_without_a_clock(self):
        reminders = Reminders()
        reminders.add("now", 0)
        reminders.add("later", 1000)
        self.assertEqual(reminders.due(), ["now"])

    def test_stored_lists_stay_readable(self):
        loaded = Reminders.load('[{"text": "old", "due": 5}]')
        self.assertEqual(loaded.due(), ["old"])

    def test_due(self):
        now = [100]
        reminders = Reminders(clock=lambda: now[0])
        reminders.add("tea", 5)
        self.assertEqual(reminders.due(), [])
        now[0] = 105
        self.assertEqual(reminders.due(), ["tea"])

    def test_seconds_left(self):
        now = [100]
        reminders = Reminders(clock=lambda: now[0])
        reminders.add("tea", 5)
        now[0] = 102
        self.assertEqual(reminders.seconds_left("tea"), 3)
        now[0] = 200
        self.assertEqual(reminders.seconds_left("tea"), 0)

    def test_what_it_stores_is_by_its_clock(self):
        reminders = Reminders(clock=lambda: 7)
        reminders.add("tea", 5)
        self.assertEqual(reminders.dump(), '[{"text": "tea", "due": 12}]')
