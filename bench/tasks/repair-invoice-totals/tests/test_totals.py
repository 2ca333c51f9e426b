import unittest
from decimal import Decimal

from invoice.items import Item
from invoice.totals import total


class TotalsTest(unittest.TestCase):
    def test_no_items(self):
        self.assertEqual(total([]), Decimal(0))

    def test_plain_line(self):
        self.assertEqual(total([Item("pen", Decimal("1.00"), 10)]), Decimal("11.90"))

    def test_discount_before_tax(self):
        item = Item("desk", Decimal(200), discount=Decimal(100))
        self.assertEqual(total([item]), Decimal("119.00"))

    def test_rounded_once(self):
        items = [Item("clip", Decimal("0.03"), tax=Decimal("0.07"))] * 10
        self.assertEqual(total(items), Decimal("0.32"))

    def test_rounded_half_up(self):
        self.assertEqual(total([Item("leaf", Decimal("0.50"), tax=Decimal("0.01"))]), Decimal("0.51"))
