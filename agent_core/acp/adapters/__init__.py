"""How external agents are reached: a line of JSON is a message, over the input and output of a program."""
