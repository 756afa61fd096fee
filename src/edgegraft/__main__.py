"""``python -m edgegraft`` is the ``edgegraft`` command."""

from edgegraft.cli import main

if __name__ == "__main__":
    main()
