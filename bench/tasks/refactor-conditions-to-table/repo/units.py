"""Weights."""

UNITS = ["g", "kg", "t", "oz", "lb"]


def to_grams(amount, unit):
    if unit == "g":
        return amount * 1
    elif unit == "kg":
        return amount * 1000
    elif unit == "t":
        return amount * 1000000
    elif unit == "oz":
        return amount * 28
    elif unit == "lb":
        return amount * 453
    raise ValueError(f"unknown unit {unit!r}; use one of {', '.join(UNITS)}")


def from_grams(grams, unit):
    if unit == "g":
        return grams / 1
    elif unit == "kg":
        return grams / 1000
    elif unit == "t":
        return grams / 1000000
    elif unit == "oz":
        return grams / 28
    elif unit == "lb":
        return grams / 453
    raise ValueError(f"unknown unit {unit!r}; use one of {', '.join(UNITS)}")
