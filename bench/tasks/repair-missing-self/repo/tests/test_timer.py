import unittest

from timer import LapTimer


class TimerTest(unittest.TestCase):
    def setUp(self):
        times = iter([10, 13, 18])
        self.timer = LapTimer(lambda: next(times))

    def test_lap(self):
        self.assertEqual(self.timer.lap(), 3)
        self.assertEqual(self.timer.lap(), 5)

    def test_total(self):
        self.timer.laps = [3, 5]
        self.assertEqual(self.timer.total(), 8)

    def test_a_new_timer_has_no_laps(self):
        self.assertEqual(self.timer.laps, [])
