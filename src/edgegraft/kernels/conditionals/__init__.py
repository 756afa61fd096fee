"""Conditionals given the neighbours: logits, softmax, residuals, scores."""
