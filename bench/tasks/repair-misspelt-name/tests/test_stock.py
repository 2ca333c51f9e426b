import unittest

from stock import Stock


class StockTest(unittest.TestCase):
    def setUp(self):
        self.stock = Stock()
        self.stock.add("bolt", 5)
        self.stock.add("nut", 20)

    def test_add(self):
        self.stock.add("bolt", 2)
        self.assertEqual(self.stock.amounts["bolt"], 7)

    def test_removing_too_much_names_what_is_there(self):
        with self.assertRaisesRegex(ValueError, "only 5 of bolt"):
            self.stock.remove("bolt", 6)

    def test_low(self):
        self.assertEqual(self.stock.low(10), ["bolt"])


if __name__ == "__main__":
    unittest.main()
