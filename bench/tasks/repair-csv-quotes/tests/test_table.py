import unittest

from table import parse, parse_row


class TableTest(unittest.TestCase):
    def test_plain(self):
        self.assertEqual(parse_row("a,b,,c\n"), ["a", "b", "", "c"])

    def test_empty_lines_are_left_out(self):
        self.assertEqual(parse("a,1\n\nb,2\n"), [["a", "1"], ["b", "2"]])

    def test_comma_in_quotes(self):
        self.assertEqual(parse_row('1,"nuts, bolts",2'), ["1", "nuts, bolts", "2"])

    def test_doubled_quotes(self):
        self.assertEqual(parse_row('"a 5"" pipe",x'), ['a 5" pipe', "x"])

    def test_quoted_field_at_the_end(self):
        self.assertEqual(parse_row('x,""'), ["x", ""])

    def test_open_quote(self):
        with self.assertRaises(ValueError):
            parse_row('a,"b')
