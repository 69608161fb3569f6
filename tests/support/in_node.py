"""A page's scripts in node, for tests: what they compute, as JSON."""

import json
import shutil
import subprocess

import pytest

from onelayer.views.page_files import asset

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="needs node: apt-get install nodejs")
READ = 'const given = JSON.parse(require("fs").readFileSync("given.json"));'


def in_node(tmp_path, assets, script, given):
    """What a script prints behind these assets, as JSON."""
    (tmp_path / "given.json").write_text(json.dumps(given))
    (tmp_path / "run.js").write_text("".join(map(asset, assets)) + READ + script)
    done = subprocess.run([NODE, "run.js"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
