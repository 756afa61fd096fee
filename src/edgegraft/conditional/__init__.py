"""One column given its neighbours, on distinct rows: fits, tests, effects and their influence."""
