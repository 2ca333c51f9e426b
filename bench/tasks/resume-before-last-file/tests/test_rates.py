import unittest
from fractions import Fraction
from pathlib import Path

from rates.convert import convert
from rates.parse import parse


class RatesTest(unittest.TestCase):
    def test_parse(self):
        self.assertAlmostEqual(float(parse("0.5")), 0.5)

    def test_exact(self):
        self.assertEqual(convert("0.10", "3"), Fraction(3, 10))
        self.assertIsInstance(convert("1", "1"), Fraction)

    def test_percentage(self):
        self.assertEqual(parse(" 7 % "), Fraction(7, 100))

    def test_changes(self):
        lines = (Path(__file__).parents[1] / "CHANGES.md").read_text("utf-8").splitlines()
        self.assertEqual(len([line for line in lines if line.startswith("- ")]), 2)
        self.assertTrue(lines[-1].startswith("- "))
