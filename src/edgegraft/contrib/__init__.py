"""Plug-ins that bring a dependency of their own."""
