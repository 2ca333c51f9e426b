import unittest


class StepsTest(unittest.TestCase):
    def test_steps(self):
        from steps import steps

        self.assertEqual(steps(7, 3), [3, 3, 1])
        self.assertEqual(steps(6, 3), [3, 3])
        self.assertEqual(steps(0, 3), [])
