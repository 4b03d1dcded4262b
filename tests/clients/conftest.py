"""Fixtures of the client tests: the same private server, and the clients' packages in the build folder."""
import fcntl
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


def installed(name, wanted, install):
    """A folder of packages in the build folder, installed once for all test processes."""
    folder = build_dir() / name
    mark = build_dir() / f"{name}.installed"
    with open(build_dir() / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not mark.exists() or mark.read_text() != wanted:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            install(folder)
            mark.write_text(wanted)
    return folder


@pytest.fixture(scope="session")
def node():
    """Run a script of this folder with node and the npm packages."""
    def install(folder):
        shutil.copy(HERE / "package.json", folder)
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--silent"],
                       cwd=folder, check=True, timeout=300)

    folder = installed("node", (HERE / "package.json").read_text(), install)

    def run(script, *args):
        shutil.copy(HERE / script, folder / script)
        return subprocess.run(["node", script, *map(str, args)], cwd=folder, capture_output=True, text=True,
                              timeout=300, env={**os.environ, "NO_COLOR": "1"})

    return run


@pytest.fixture(scope="session")
def python():
    """Run a script of this folder in a virtual environment that has the Python client."""
    def install(folder):
        subprocess.run(["/usr/bin/python3", "-m", "venv", folder], check=True, timeout=120)
        subprocess.run([folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check",
                        "-r", HERE / "requirements.txt"], check=True, timeout=300)

    folder = installed("python", (HERE / "requirements.txt").read_text(), install)

    def run(script, *args):
        return subprocess.run([folder / "bin/python", HERE / script, *map(str, args)], capture_output=True,
                              text=True, timeout=300)

    return run
