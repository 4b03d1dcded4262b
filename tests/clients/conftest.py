"""Fixtures of the client tests: the same private server, and the npm packages in the build folder."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))

from stack import Stack, build_dir  # noqa: E402


@pytest.fixture(scope="session")
def stack():
    s = Stack().start()
    yield s
    reports = s.stop()
    assert not reports, "\n".join(reports)


@pytest.fixture(scope="session")
def node():
    """Run a script of this folder with node; its npm packages are installed in the build folder."""
    folder = build_dir() / "node"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "package.json", folder / "package.json")
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--silent"],
                   cwd=folder, check=True, timeout=300)

    def run(script, *args):
        shutil.copy(HERE / script, folder / script)
        return subprocess.run(["node", script, *map(str, args)], cwd=folder, capture_output=True, text=True,
                              timeout=300, env={**os.environ, "NO_COLOR": "1"})

    return run
