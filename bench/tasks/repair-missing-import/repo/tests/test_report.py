import unittest

import report

TEXT = '[{"station": "north", "degrees": "1.5"}, {"station": "south", "degrees": 4}]'


class ReportTest(unittest.TestCase):
    def test_load(self):
        self.assertEqual(report.load(TEXT), [("north", 1.5), ("south", 4.0)])

    def test_mean(self):
        self.assertEqual(report.mean([("a", 1.0), ("b", 2.0)]), 1.5)

    def test_mean_of_nothing(self):
        self.assertIsNone(report.mean([]))

    def test_warmest(self):
        self.assertEqual(report.warmest([("a", 1.0), ("b", 2.0)]), "b")
