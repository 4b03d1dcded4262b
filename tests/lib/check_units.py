"""Check the systemd units: `verify` must have nothing to say, `security` at most 2.0 for each."""
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
MOST = 2.0


def main():
    build = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as tmp:
        units = pathlib.Path(tmp)
        programs = {p.name: p for p in (build / "handlers").rglob("hindsight-*") if p.is_file()}
        for src in sorted((SOURCE / "systemd").glob("*.service.in")) + sorted((SOURCE / "systemd").glob("*.socket")) + \
                sorted((SOURCE / "systemd").glob("*.timer")):
            text = src.read_text()
            text = re.sub(r"@pkglibexecdir@/(\S+)", lambda m: str(programs[m.group(1)]), text)
            text = text.replace("@sysconfdir@", "/etc").replace("@docdir@", "/usr/share/doc/hindsight-fcgi")
            assert "@" not in re.sub(r"SystemCallFilter=.*", "", text), f"{src.name}: a placeholder is left"
            (units / src.name.removesuffix(".in")).write_text(text)
        bad = 0
        for unit in sorted(units.iterdir()):
            p = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True)
            if p.returncode or p.stdout.strip() or p.stderr.strip():
                print(f"{unit.name}: verify says:\n{p.stdout}{p.stderr}")
                bad += 1
        for unit in sorted(units.glob("*.service")):
            p = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--no-pager", unit],
                               capture_output=True, text=True)
            m = re.search(r"exposure level for \S+: ([0-9.]+)", p.stdout)
            level = float(m.group(1)) if m else 10.0
            print(f"{unit.name}: exposure {level}")
            if level > MOST:
                print(p.stdout, p.stderr)
                bad += 1
        return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
