"""A plan is a list of shapes."""

from geometry.shapes import Rectangle, Sqare


def parse(text):
    """Read shapes such as `3x4, 5`."""
    shapes = []
    for part in text.split(","):
        width, _, height = part.strip().partition("x")
        shapes.append(Rectangle(int(width), int(height)) if height else Square(int(width)))
    return shapes


def total_area(shapes):
    return sum(shape.area() for shape in shapes)
