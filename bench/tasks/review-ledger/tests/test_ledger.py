import unittest

from ledger import Ledger


class LedgerTest(unittest.TestCase):
    def setUp(self):
        self.ledger = Ledger()
        self.ledger.add(500, "Rent of May")

    def test_transfer(self):
        other = Ledger()
        self.ledger.transfer(other, 200, "x")
        self.assertEqual((self.ledger.balance(), other.balance()), (300, 200))
        with self.assertRaises(ValueError):
            self.ledger.transfer(other, 301, "x")

    def test_transfer_of_nothing(self):
        with self.assertRaises(ValueError):
            self.ledger.transfer(Ledger(), 0, "x")

    def test_first_page(self):
        self.assertEqual(self.ledger.page(1), [(500, "Rent of May")])

    def test_find(self):
        self.assertEqual(len(self.ledger.find("rent")), 1)
