"""Accounts."""


class Account:
    def __init__(self):
        self.entries = []


def get_val(account):
    """Return the balance in cents."""
    return sum(account.entries)
