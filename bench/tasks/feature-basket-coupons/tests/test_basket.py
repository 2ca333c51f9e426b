import unittest

from shop.basket import Basket


class BasketTest(unittest.TestCase):
    def setUp(self):
        self.basket = Basket()
        self.basket.add("cup", 999, 2)

    def test_total(self):
        self.assertEqual(self.basket.total(), 1998)

    def test_percent(self):
        self.basket.redeem("TEN")
        self.assertEqual(self.basket.total(), 1998 - 199)

    def test_amount_never_below_zero(self):
        small = Basket()
        small.add("pin", 50)
        small.redeem("ONE-OFF")
        self.assertEqual(small.total(), 0)

    def test_percentages_come_first(self):
        self.basket.redeem("FIVE-OFF")
        self.basket.redeem("HALF")
        self.assertEqual(self.basket.total(), 499)

    def test_a_code_works_once(self):
        from shop.coupons import CouponError

        self.basket.redeem("TEN")
        with self.assertRaises(CouponError):
            self.basket.redeem("TEN")

    def test_an_unknown_code(self):
        from shop.coupons import CouponError

        with self.assertRaises(CouponError):
            self.basket.redeem("FREE")
        self.assertEqual(self.basket.total(), 1998)
