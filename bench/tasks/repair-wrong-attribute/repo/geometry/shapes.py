"""Shapes on a grid."""


class Rectangle:
    def __init__(self, width, height):
        self.width = width
        self.height = height

    def area(self):
        return self.width * self.heigth

    def rotated(self):
        return Rectangle(self.height, self.width)


class Square(Rectangle):
    def __init__(self, side):
        super().__init__(side, side)
