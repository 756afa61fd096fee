"""Results of the code before it was refactored (issue 16), which it must still give."""
