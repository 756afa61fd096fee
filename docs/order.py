"""Reading order of the gallery pages; a page that is not listed here is refused."""

from pathlib import Path

PAGES = (
    "start",
    "how_it_works",
    "choosing",
    "reading",
    "large_data",
    "resume",
    "export",
    "engine",
    "penalty",
    "priority",
)


class ReadingOrder:
    """Sort key of sphinx-gallery."""

    def __init__(self, folder):
        self.folder = folder

    def __repr__(self):
        return "ReadingOrder"

    def __call__(self, filename):
        """Return the position of a script."""
        return PAGES.index(Path(filename).stem)
