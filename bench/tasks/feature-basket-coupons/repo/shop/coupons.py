"""Coupons: a percentage or an amount in cents."""

COUPONS = {
    "TEN": ("percent", 10),
    "HALF": ("percent", 50),
    "FIVE-OFF": ("amount", 500),
    "ONE-OFF": ("amount", 100),
}
