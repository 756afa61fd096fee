"""Building a release and checking it: ``make dist`` and ``make release-check``."""
