import unittest

from geometry.shapes import Rectangle


class ShapeTest(unittest.TestCase):
    def test_area(self):
        self.assertEqual(Rectangle(3, 4).area(), 12)

    def test_rotated(self):
        self.assertEqual(Rectangle(3, 4).rotated().width, 4)

    def test_a_plan_is_parsed(self):
        from geometry import plan

        self.assertEqual(plan.total_area(plan.parse("3x4, 5")), 37)
