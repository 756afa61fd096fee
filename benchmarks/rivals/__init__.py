"""Alternative tools, measured on the same data with the same harness.

    python -m benchmarks.rivals run  [--data NAME ...] [--rivals NAME ...] [--seeds 4 5 6]
    python -m benchmarks.rivals page [--data NAME ...]

Every fit runs in its own process, under a limit, and writes one JSON file, so that an interrupted
run resumes. `page` writes the tables and the plot of docs/rivals.md from these files.
"""
