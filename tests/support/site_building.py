"""The documentation as a site, for tests: what `make docs` runs."""

import subprocess
import sys
from pathlib import Path

from pages import ROOT, with_package


def built_site(place: Path) -> Path:
    """The built pages, in a folder under `place`; a warning fails the build."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", place / "trees"]
    done = subprocess.run(
        [*command, ROOT / "docs", place / "html"], capture_output=True, text=True, check=False, env=with_package()
    )
    assert (done.returncode, done.stderr) == (0, "")
    return place / "html"
