"""Statement of accounts."""

from bank.account import get_val


def statement(account):
    return f"statement: {get_val(account) / 100:.2f}"
