"""What people would use instead, on the same data in the same harness.

    python -m benchmarks.rivals run  [--data NAME ...] [--rivals NAME ...] [--seeds 4 5 6]
    python -m benchmarks.rivals page [--data NAME ...]

Every fit runs in a process of its own, under a limit, and leaves one JSON file: a run that was
killed goes on where it stopped. `page` writes the tables and the plot of docs/rivals.md from them.
"""
