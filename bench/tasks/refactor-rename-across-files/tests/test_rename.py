import unittest
import warnings

from bank import account
from bank.alert import alert
from bank.statement import statement


class RenameTest(unittest.TestCase):
    def setUp(self):
        self.account = account.Account()
        self.account.entries = [1000, -250]

    def test_statement(self):
        self.assertEqual(statement(self.account), "statement: 7.50")

    def test_balance(self):
        from bank.balance import balance_cents

        self.assertEqual(balance_cents(self.account), 750)

    def test_the_old_name_warns(self):
        with self.assertWarnsRegex(DeprecationWarning, "bank.balance.balance_cents"):
            self.assertEqual(account.get_val(self.account), 750)

    def test_nothing_here_uses_the_old_name(self):
        def refuse(_):
            raise AssertionError("the old name is used")

        old, account.get_val = account.get_val, refuse
        self.addCleanup(setattr, account, "get_val", old)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(alert(self.account), "alert: 7.50")
        for module in (alert, statement):
            self.assertNotIn("get_val", module.__globals__)
