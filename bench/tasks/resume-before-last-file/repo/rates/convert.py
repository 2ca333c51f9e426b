"""Converts amounts."""

from rates.parse import parse


def convert(rate, amount):
    return parse(rate) * float(amount)
