import unittest
from decimal import Decimal

from invoice import Invoice, Item
from invoice.totals import discount, subtotal


class InvoiceTest(unittest.TestCase):
    def test_items_are_added_up(self):
        items = [Item("pen", Decimal("1.50"), 2), Item("ink", Decimal("4.25"))]
        self.assertEqual(subtotal(items), Decimal("7.25"))

    def test_large_orders_get_a_discount(self):
        self.assertEqual(discount(Decimal("99.99")), Decimal(0))
        self.assertEqual(discount(Decimal("200.00")), Decimal("4.00"))
        self.assertEqual(discount(Decimal("1000.00")), Decimal("50.00"))

    def test_the_total_includes_tax(self):
        invoice = Invoice("Ada").add(Item("desk", Decimal("200.00")))
        self.assertEqual(invoice.total(), Decimal("233.24"))

    def test_lines_end_with_the_total(self):
        invoice = Invoice("Ada").add(Item("pen", Decimal("1.50"), 2))
        self.assertEqual(
            invoice.lines(), ["Invoice for Ada", "2 x pen: 3.00", "Total: 3.57"]
        )


if __name__ == "__main__":
    unittest.main()
