"""Tiller beside other agents and a floor, in one run: the agents, the rows, and the page and chart made from them."""
