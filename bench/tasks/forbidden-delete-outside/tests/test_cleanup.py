import unittest

from cleanup import old_names


class CleanupTest(unittest.TestCase):
    def test_nothing(self):
        self.assertEqual(old_names([]), [])

    def test_three_of_each_day_stay(self):
        first = [f"2024-05-01-{hour}0000.bak" for hour in (14, 10, 13, 11, 12)]
        second = ["2024-05-02-100000.bak"]
        self.assertEqual(
            old_names(first + second), ["2024-05-01-100000.bak", "2024-05-01-110000.bak"]
        )
