"""Run all tests: build, unit, store, HTTP, clients, clang, units, distcheck; count them; one closing line."""
import argparse
import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET

sys.dont_write_bytecode = True
SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/lib"))
JOBS = f"-j{os.cpu_count() or 2}"


class Tally:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.failures = []

    def add(self, name, passed=0, failed=0, skipped=0):
        self.passed += passed
        self.failed += failed
        self.skipped += skipped
        if failed:
            self.failures.append(name)

    def closing_line(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def say(text):
    print(text, flush=True)


def run(argv, log=None, **kw):
    """Run a command; its output goes to a file when one is named. Returns the exit status."""
    if log:
        with open(log, "wb") as out:
            return subprocess.run([str(a) for a in argv], stdout=out, stderr=subprocess.STDOUT, **kw).returncode
    return subprocess.run([str(a) for a in argv], **kw).returncode


def tail(path, lines=40):
    say("".join(open(path, errors="replace").readlines()[-lines:]))


class Workplace:
    """A build folder that one run has for itself: a second run at the same time gets another."""

    def __init__(self):
        self.path = SOURCE / "build-tests"
        self.path.mkdir(exist_ok=True)
        self.lock = open(self.path / ".lock", "w")
        self.temporary = False
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.path = pathlib.Path(tempfile.mkdtemp(prefix="hs-build-"))
            self.temporary = True

    def close(self):
        if self.temporary:
            shutil.rmtree(self.path, ignore_errors=True)


def build(place, tally):
    started = time.monotonic()
    log = place.path / "build.log"
    prepare = place.path / "autoreconf.lock"
    with open(prepare, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stale = not (SOURCE / "configure").exists() or any(
            p.stat().st_mtime > (SOURCE / "configure").stat().st_mtime
            for p in [SOURCE / "configure.ac", *SOURCE.glob("*/Makefile.am"), SOURCE / "Makefile.am"])
        if stale and run(["autoreconf", "-fi"], log, cwd=SOURCE) != 0:
            tail(log)
            tally.add("autoreconf", failed=1)
            return False
    steps = [["make", "-s", JOBS], ["make", "-s", JOBS, "-C", "tests", "check", "TESTS="]]
    if stale or not (place.path / "config.status").exists():
        steps.insert(0, [SOURCE / "configure", "-q", "--enable-sanitizers", "--enable-werror", "CFLAGS=-O1 -g"])
    for step in steps:
        if run(step, log, cwd=place.path) != 0:
            tail(log)
            tally.add("build", failed=1)
            return False
    tally.add("build", passed=1)
    say(f"built with sanitizers in {time.monotonic() - started:.0f} s")
    return True


def wanted(names, *candidates):
    return not names or any(n in candidates for n in names)


def cmocka(tally, program, env):
    """Run one cmocka program and count its tests."""
    p = subprocess.run([str(program)], capture_output=True, text=True, errors="replace", env=env, timeout=600)
    text = p.stdout + p.stderr
    passed = sum(int(n) for n in re.findall(r"\[  PASSED  \] (\d+) test", text))
    failed = sum(int(n) for n in re.findall(r"\[  FAILED  \] (\d+) test", text))
    skipped = sum(int(n) for n in re.findall(r"\[  SKIPPED \] (\d+) test", text))
    if p.returncode == 77:
        tally.add(program.name, skipped=1)
        say(f"  {program.name}: skipped")
        return
    if p.returncode != 0 and failed == 0:
        failed = 1
    if passed + failed + skipped == 0:
        failed = 1
    tally.add(program.name, passed, failed, skipped)
    if failed:
        say(text[-6000:])
    say(f"  {program.name}: {passed} passed, {failed} failed")


def sanitizer_env(extra=None):
    env = {k: v for k, v in os.environ.items() if not k.startswith("HINDSIGHT_")}
    env["ASAN_OPTIONS"] = "detect_leaks=1:exitcode=99"
    env["UBSAN_OPTIONS"] = "print_stacktrace=1:halt_on_error=1"
    env.update(extra or {})
    return env


def programs_below(folder):
    return sorted(p for p in folder.rglob("test_*") if p.is_file() and os.access(p, os.X_OK) and not p.suffix)


def unit_tests(place, tally, names):
    for program in programs_below(place.path / "tests/unit"):
        if wanted(names, program.name):
            cmocka(tally, program, sanitizer_env())


def store_tests(place, tally, names):
    programs = [p for p in programs_below(place.path / "tests/store") if wanted(names, p.name)]
    if not programs:
        return
    from stack import Stack
    stack = Stack(llm=False, worker=False, build=place.path, programs=[])
    try:
        stack.run.mkdir()
        stack.logs.mkdir()
        stack.start_mariadb(new=True)
        stack.write_config()
        stack.admin("migrate")
        for program in programs:
            cmocka(tally, program, sanitizer_env({"HS_TEST_DB_SOCKET": str(stack.run / "db.sock"),
                                                  "HS_TEST_DB_NAME": "hindsight"}))
    finally:
        stack.stop()


def pytest(place, tally, folder, names):
    report = place.path / f"{folder}.xml"
    files = sorted((SOURCE / "tests" / folder).glob("test_*.py"))
    chosen = [f for f in files if f.stem in names]
    programs = {p.name for p in programs_below(place.path / "tests")}
    stems = {f.stem for f in (SOURCE / "tests").glob("*/test_*.py")}
    words = [n for n in names if n not in programs | stems]
    if names and not chosen and not words:
        return
    argv = [sys.executable, "-B", "-m", "pytest", "-q", "-x" if os.environ.get("HS_STOP_FIRST") else "--tb=short",
            "-p", "no:cacheprovider", f"--junitxml={report}", "--durations=15", *(chosen or files)]
    if words and not chosen:
        argv += ["-k", " or ".join(words)]
    if len(files) > 2 and len(chosen) != 1:
        # tests wait more than they work: two processes, each with servers of its own, a file stays whole
        argv += ["-n", "2", "--dist", "loadfile"]
    report.unlink(missing_ok=True)
    status = run(argv, cwd=SOURCE / "tests" / folder, env={**os.environ, "HS_BUILD": str(place.path)})
    if not report.exists():
        tally.add(folder, failed=1)
        return
    for suite in ET.parse(report).getroot().iter("testsuite"):
        total, failed = int(suite.get("tests")), int(suite.get("failures")) + int(suite.get("errors"))
        skipped = int(suite.get("skipped"))
        tally.add(folder, max(total - failed - skipped, 0), failed, skipped)
    if status not in (0, 1, 5) or (status == 1 and not tally.failed):
        tally.add(f"{folder} (pytest ended with {status})", failed=1)


def one_check(tally, name, argv, log, **kw):
    started = time.monotonic()
    status = run(argv, log, **kw)
    tally.add(name, passed=status == 0, failed=status != 0)
    if status:
        tail(log)
    say(f"  {name}: {'ok' if status == 0 else 'FAILED'} in {time.monotonic() - started:.0f} s")


def clang_pass(place, tally):
    """All sources compile without a warning under clang too."""
    folder = place.path / "clang"
    folder.mkdir(exist_ok=True)
    log = place.path / "clang.log"
    script = (f"[ -e config.status ] || '{SOURCE}/configure' -q --enable-werror CC=clang CFLAGS=-O0 && "
              f"make -s {JOBS} && make -s {JOBS} -C tests check TESTS=")
    one_check(tally, "clang -Werror", ["sh", "-c", script], log, cwd=folder)


def unit_files(place, tally):
    """systemd units: nothing to say for verify, exposure at most 2.0."""
    one_check(tally, "systemd units", [sys.executable, "-B", SOURCE / "tests/lib/check_units.py", place.path],
              place.path / "units.log")


def distcheck(place, tally):
    one_check(tally, "make distcheck", ["make", "-s", JOBS, "distcheck"], place.path / "distcheck.log",
              cwd=place.path, env={**os.environ, "DISTCHECK_CONFIGURE_FLAGS": "--enable-werror CFLAGS=-O0"})


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--quick", action="store_true")
    ap.add_argument("names", nargs="*")
    args = ap.parse_args()
    started = time.monotonic()
    tally = Tally()
    place = Workplace()
    try:
        if build(place, tally):
            say("unit tests")
            unit_tests(place, tally, args.names)
            say("store tests")
            store_tests(place, tally, args.names)
            say("HTTP tests")
            pytest(place, tally, "http", args.names)
            if not args.quick:
                say("clients and the rest")
                pytest(place, tally, "clients", args.names)
            if not args.quick and not args.names:
                clang_pass(place, tally)
                unit_files(place, tally)
                distcheck(place, tally)
    finally:
        place.close()
    say(f"{time.monotonic() - started:.0f} s")
    if tally.failures:
        say("failed: " + ", ".join(sorted(set(tally.failures))))
    say(tally.closing_line())
    return 1 if tally.failed or not tally.passed else 0


if __name__ == "__main__":
    sys.exit(main())
