"""Alert of accounts."""

from bank.account import get_val


def alert(account):
    return f"alert: {get_val(account) / 100:.2f}"
