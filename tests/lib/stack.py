"""A whole private server for tests: MariaDB, all programs, the worker, nginx, a scripted model.

Everything lives in one short folder under /tmp, listens on unix sockets or loopback ports the kernel
chose, and is ended by pid. As a program it starts a server and prints its address:

    python3 tests/lib/stack.py [--build DIR] [--set key=value]... [--no-llm]
"""
import argparse
import datetime
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
from signal import SIGKILL, SIGTERM
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

import pymysql

SIGTERM = signal.SIGTERM  # Process has a method of the module's name
SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ["banks", "memories", "mental-models", "reflect", "prompts", "operations", "mcp"]
FOLDERS = {"worker": "operations/worker", "admin": "admin", "refresh-tick": "mental-models/tick"}
MARIADB_OPTIONS = [
    "--skip-networking", "--performance-schema=0", "--innodb-buffer-pool-size=64M",
    "--innodb-log-file-size=32M", "--innodb-doublewrite=0", "--transaction-isolation=READ-COMMITTED",
    "--character-set-server=utf8mb4", "--max-allowed-packet=64M", "--max-connections=300",
    "--log-bin-trust-function-creators=1", "--skip-log-bin", "--sql-mode=STRICT_ALL_TABLES",
]


def build_dir():
    return pathlib.Path(os.environ.get("HS_BUILD", SOURCE / "build")).resolve()


def program_path(name, build=None):
    build = build or build_dir()
    folder = FOLDERS.get(name, name)
    return build / "handlers" / folder / f"hindsight-{name}"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(what, test, seconds=20, every=0.02):
    """The first true value of test(); an error naming `what` when the time is over."""
    end = time.monotonic() + seconds
    while True:
        value = test()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"waited {seconds} s for {what}")
        time.sleep(every)


class Process:
    """One child of ours, its output in a log file."""

    def __init__(self, name, argv, log, env=None, cwd=None):
        self.name, self.argv, self.log = name, [str(a) for a in argv], pathlib.Path(log)
        self.env, self.cwd = env, cwd
        self.child = None
        self.start()

    def start(self):
        with open(self.log, "ab") as out:
            self.child = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                          env=self.env, cwd=self.cwd)

    @property
    def pid(self):
        return self.child.pid

    def alive(self):
        return self.child.poll() is None

    def signal(self, number):
        if self.alive():
            self.child.send_signal(number)

    def stop(self, number=SIGTERM, seconds=15):
        self.signal(number)
        try:
            return self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.child.kill()
            return self.child.wait()

    def kill(self):
        return self.stop(SIGKILL)

    def log_text(self):
        return self.log.read_text(errors="replace")


class Answer:
    """Status, headers and body of one HTTP answer."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    @property
    def detail(self):
        return self.json()["detail"]

    def __repr__(self):
        return f"<{self.status} {self.body[:400]!r}>"


class Api:
    """A small HTTP client that sends paths as they are (no clean-up of '..' or escapes)."""

    def __init__(self, port, timeout=60, headers=None):
        self.port, self.timeout, self.headers = port, timeout, headers or {}

    def raw(self, method, path, body=None, headers=None, timeout=None):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout or self.timeout)
        try:
            c.putrequest(method, path, skip_accept_encoding=True)
            sent = {**self.headers, **(headers or {})}
            if body is not None and "Content-Length" not in sent and "Transfer-Encoding" not in sent:
                sent["Content-Length"] = str(len(body))
            for k, v in sent.items():
                c.putheader(k, v)
            c.endheaders()
            if body is not None:
                c.send(body)
            r = c.getresponse()
            return Answer(r.status, r.headers, r.read())
        finally:
            c.close()

    def call(self, method, path, data=None, headers=None, timeout=None, **query):
        """JSON in, Answer out. Query values may be lists; None leaves one out."""
        pairs = []
        for k, v in query.items():
            for one in v if isinstance(v, (list, tuple)) else [v]:
                if one is not None:
                    pairs.append((k, str(one).lower() if isinstance(one, bool) else one))
        if pairs:
            path += "?" + urllib.parse.urlencode(pairs)
        body = None
        headers = dict(headers or {})
        if data is not None:
            body = json.dumps(data).encode()
            headers.setdefault("Content-Type", "application/json")
        return self.raw(method, path, body, headers, timeout)

    def get(self, path, **kw):
        return self.call("GET", path, **kw)

    def post(self, path, data=None, **kw):
        return self.call("POST", path, data, **kw)

    def put(self, path, data=None, **kw):
        return self.call("PUT", path, data, **kw)

    def patch(self, path, data=None, **kw):
        return self.call("PATCH", path, data, **kw)

    def delete(self, path, data=None, **kw):
        return self.call("DELETE", path, data, **kw)


def quote(segment):
    return urllib.parse.quote(segment, safe="")


class Bank:
    """One bank and the calls that most tests make on it."""

    def __init__(self, api, bank_id):
        self.api, self.id = api, bank_id
        self.path = "/v1/default/banks/" + quote(bank_id)

    def __getattr__(self, verb):
        if verb not in ("get", "post", "put", "patch", "delete", "call"):
            raise AttributeError(verb)
        fn = getattr(self.api, verb)
        if verb == "call":
            return lambda method, path="", *a, **kw: fn(method, self.path + path, *a, **kw)
        return lambda path="", *a, **kw: fn(self.path + path, *a, **kw)

    def make(self, **body):
        return ok(self.put("", body))

    def retain(self, content, **item):
        return ok(self.post("/memories", {"items": [{"content": content, **item}]}))

    def memories(self, **query):
        return ok(self.get("/memories/list", limit=1000, **query))["items"]

    def recall(self, query, **body):
        return ok(self.post("/memories/recall", {"query": query, **body}))

    def operation(self, operation_id, wait=None, **query):
        return ok(self.get(f"/operations/{operation_id}", wait=wait, **query))

    def wait(self, operation_id, seconds=60):
        """The operation once it has ended."""
        end = time.monotonic() + seconds
        while True:
            op = self.operation(operation_id, wait=10)
            if op["status"] in ("completed", "failed", "cancelled", "not_found"):
                return op
            if time.monotonic() > end:
                raise TimeoutError(f"operation still {op['status']}: {op}")

    def idle(self, seconds=60):
        """Wait until nothing of this bank is pending (but parked rows) or processing."""
        def is_open(op):
            parked = op["next_retry_at"] and datetime.datetime.fromisoformat(op["next_retry_at"]).timestamp() > time.time()
            return op["status"] == "processing" or (op["status"] == "pending" and not parked)

        def quiet():
            # the last look is one snapshot: what moves on between two looks is not missed
            for status in ("pending", "processing", None):
                ops = ok(self.get("/operations", status=status, limit=100))["operations"]
                if any(is_open(op) for op in ops):
                    return False
            return True
        wait_for("an idle queue", quiet, seconds, 0.05)

    def consolidate(self):
        op = ok(self.post("/consolidate"))
        return self.wait(op["operation_id"])

    def model(self, name="Model", source_query="What is known?", wait=True, **body):
        """Create a mental model; the model object after its first refresh."""
        made = ok(self.post("/mental-models", {"name": name, "source_query": source_query, **body}))
        if wait:
            self.wait(made["operation_id"])
        return ok(self.get("/mental-models/" + quote(made["mental_model_id"])))


def ok(answer, status=200):
    """The JSON body of an answer that must have this status."""
    assert answer.status == status, answer
    return answer.json() if answer.body else None


class Llm:
    """Remote control of the scripted model server."""

    def __init__(self, port):
        self.port = port
        self.api = Api(port)
        self.base_url = f"http://127.0.0.1:{port}/v1"

    def reset(self):
        ok(self.api.post("/_reset", {}))

    def script(self, *rules):
        """Rules in front of the default behaviour; see tests/fake/llm_server.py."""
        ok(self.api.post("/_script", {"rules": list(rules)}))

    def calls(self, scope=None):
        """Recorded requests, oldest first, optionally of one scope."""
        calls = ok(self.api.get("/_calls"))["calls"]
        return [c for c in calls if scope is None or c["scope"] == scope]

    def chats(self):
        return [c for c in self.calls() if c["path"].endswith("/chat/completions")]


class Stack:
    """Start everything with `with Stack(...) as s` or start()/stop()."""

    def __init__(self, settings=None, llm=True, worker=True, build=None, env=None, programs=PROGRAMS,
                 mariadb=()):
        self.settings, self.with_llm, self.with_worker = settings or {}, llm, worker
        self.build = pathlib.Path(build) if build else build_dir()
        self.extra_env = env or {}
        self.program_names = programs
        self.mariadb_options = [*MARIADB_OPTIONS, *mariadb]
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="hs", dir="/tmp"))
        self.run, self.logs = self.dir / "run", self.dir / "log"
        self.processes = {}
        self.bank_count = 0
        self.port = None
        self.llm = None

    # starting

    def start(self):
        try:
            self.run.mkdir()
            self.logs.mkdir()
            os.chmod(self.dir, 0o755)
            self.start_mariadb(new=True)
            if self.with_llm:
                self.start_llm()
            self.write_config()
            self.admin("migrate")
            for name in self.program_names:
                self.start_program(name)
            if self.with_worker:
                self.start_worker()
            self.start_nginx()
            self.wait_ready()
        except BaseException:
            for p in self.processes.values():
                sys.stderr.write(f"--- {p.name}\n{p.log_text()[-3000:]}\n")
            self.stop()
            raise
        return self

    def spawn(self, name, argv, env=None):
        p = Process(name, argv, self.logs / f"{name}.log", env={**self.env(), **(env or {})})
        self.processes[name] = p
        return p

    def env(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("HINDSIGHT_")}
        env.setdefault("ASAN_OPTIONS", "detect_leaks=1:abort_on_error=0:exitcode=99")
        env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1:halt_on_error=1")
        env.update(self.extra_env)
        return env

    def start_mariadb(self, new=False):
        data = self.dir / "data"
        user = ["--user=root"] if os.geteuid() == 0 else []
        # a starting server removes the temporary tables of others that share its folder for them
        own = [f"--datadir={data}", f"--tmpdir={self.dir / 'tmp'}"]
        (self.dir / "tmp").mkdir(exist_ok=True)
        if new:
            with open(self.logs / "install.log", "wb") as out:
                subprocess.run(["mariadb-install-db", *user, *own,
                                "--auth-root-authentication-method=normal", "--skip-test-db",
                                "--innodb-log-file-size=32M"],
                               stdout=out, stderr=out, check=True)
        self.spawn("mariadbd", ["mariadbd", "--no-defaults", *user, *own,
                                f"--socket={self.run}/db.sock", f"--pid-file={self.run}/db.pid",
                                "--lc-messages-dir=/usr/share/mysql", *self.mariadb_options])
        wait_for("MariaDB", self.database_up)

    def database_up(self):
        if not self.processes["mariadbd"].alive():
            raise RuntimeError(self.processes["mariadbd"].log_text()[-2000:])
        try:
            self.connect(None).close()
            return True
        except pymysql.Error:
            return False

    def connect(self, database="hindsight"):
        return pymysql.connect(unix_socket=str(self.run / "db.sock"), user="root", database=database,
                               autocommit=True, charset="utf8mb4", init_command="SET time_zone='+00:00'")

    def sql(self, statement, *args):
        """Rows of one statement as dictionaries."""
        with self.connect() as c, c.cursor(pymysql.cursors.DictCursor) as cur:
            cur.execute(statement, args)
            return cur.fetchall()

    def start_llm(self):
        port_file = self.run / "llm.port"
        self.spawn("llm", [sys.executable, SOURCE / "tests/fake/llm_server.py", "--port", "0",
                           "--port-file", port_file])
        port = wait_for("the scripted model server",
                        lambda: port_file.exists() and port_file.read_text().strip())
        self.llm = Llm(int(port))

    def write_config(self):
        values = {
            "database_socket": str(self.run / "db.sock"), "database_user": "root",
            "database_name": "hindsight", "run_dir": str(self.run), "cache_dir": str(self.dir / "cache"),
            "log_level": "info", "fastcgi_threads": 8, "worker_poll_interval_ms": 100,
            "maintenance_start_jitter_seconds": 0, "shutdown_grace_seconds": 10,
        }
        if self.llm:
            values |= {"llm_base_url": self.llm.base_url, "llm_api_key": "test-key-123",
                       "llm_model": "scripted", "llm_initial_backoff": 0.01, "llm_max_backoff": 0.05}
        values |= self.settings
        self.config = self.dir / "hindsight.yaml"
        lines = []
        for key, value in values.items():
            if value is not None:
                lines.append(f"{key}: {json.dumps(value)}\n")
        self.config.write_text("".join(lines))

    def admin(self, *args, check=True, env=None):
        r = subprocess.run([program_path("admin", self.build), "--config", self.config, *args],
                           capture_output=True, text=True,
                           env={**self.env(), "HINDSIGHT_MIGRATIONS_DIR": str(SOURCE / "migrations"),
                                **(env or {})})
        if check and r.returncode != 0:
            raise RuntimeError(f"hindsight-admin {args}: {r.returncode}\n{r.stdout}\n{r.stderr}")
        return r

    def socket_of(self, name):
        return self.run / f"{name}.sock"

    def start_program(self, name, env=None):
        p = self.spawn(name, [program_path(name, self.build), "--config", self.config,
                              "--socket", self.socket_of(name)], env)
        wait_for(f"hindsight-{name}", lambda: self.socket_of(name).exists() or not p.alive())
        if not p.alive():
            raise RuntimeError(f"hindsight-{name} ended:\n{p.log_text()[-3000:]}")
        return p

    def start_worker(self, name="worker", *args, env=None):
        return self.spawn(name, [program_path("worker", self.build), "--config", self.config, *args], env)

    def tick(self, env=None):
        """One run of the refresh tick; it ends well whatever it finds."""
        r = subprocess.run([program_path("refresh-tick", self.build), "--config", self.config],
                           capture_output=True, text=True, env={**self.env(), **(env or {})}, timeout=60)
        with open(self.logs / "refresh-tick.log", "a") as log:
            log.write(r.stderr)
        assert r.returncode == 0, r.stderr
        return r

    def start_nginx(self):
        self.port = free_port()
        conf = (SOURCE / "conf/nginx/hindsight.conf.in").read_text()
        values = {"RUN_DIR": self.run, "LOG_DIR": self.logs, "PORT": self.port,
                  "LISTEN": f"127.0.0.1:{self.port}",
                  "USER": "user root;" if os.geteuid() == 0 else ""}
        conf = re.sub(r"@([A-Z_]+)@", lambda m: str(values[m.group(1)]), conf)
        (self.run / "nginx.conf").write_text(conf)
        for folder in ("client_body", "fastcgi"):
            (self.run / folder).mkdir(exist_ok=True)
        self.spawn("nginx", ["nginx", "-p", self.run, "-c", self.run / "nginx.conf",
                             "-g", "daemon off;", "-e", self.logs / "nginx-error.log"])

    def wait_ready(self):
        def ready():
            try:
                return self.api().get("/health/ready").status == 200
            except OSError:
                return False
        wait_for("/health/ready", ready)

    # using

    def api(self, **kw):
        return Api(self.port, **kw)

    def bank(self, bank_id=None, make=False, **body):
        self.bank_count += 1
        b = Bank(self.api(), bank_id or f"bank-{self.bank_count}-{os.urandom(3).hex()}")
        if make:
            b.make(**body)
        return b

    # stopping

    def restart(self, name):
        p = self.processes[name]
        p.stop()
        p.start()
        return p

    def kill_all(self):
        """kill -9 of every program, the worker and MariaDB at once."""
        for name in [*self.program_names, "worker", "mariadbd"]:
            if name in self.processes:
                self.processes[name].signal(signal.SIGKILL)
        for name in [*self.program_names, "worker", "mariadbd"]:
            if name in self.processes:
                self.processes[name].child.wait()

    def start_again(self):
        self.start_mariadb()
        for name in self.program_names:
            self.socket_of(name).unlink(missing_ok=True)
            self.start_program(name)
        if self.with_worker:
            self.start_worker()
        self.wait_ready()

    def sanitizer_reports(self):
        """Lines of sanitizer reports in any log: there must be none."""
        found = []
        for log in self.logs.glob("*.log"):
            for line in log.read_text(errors="replace").splitlines():
                if re.search(r"ERROR: (Address|Leak)Sanitizer|runtime error:|SUMMARY: ", line):
                    found.append(f"{log.name}: {line}")
        return found

    def stop(self, keep=False):
        # a killed nginx would leave its workers: every process but the database is asked to end
        order = sorted((n for n in self.processes if n != "mariadbd"), key=lambda n: "nginx" not in n)
        for name in order:
            self.processes[name].signal(signal.SIGTERM)
        for name in order:
            self.processes[name].stop()
        for p in self.processes.values():
            p.kill()
        reports = self.sanitizer_reports() if self.logs.exists() else []
        if not keep:
            shutil.rmtree(self.dir, ignore_errors=True)
        return reports

    def __enter__(self):
        return self.start()

    def __exit__(self, *exc):
        reports = self.stop()
        assert not reports, "\n".join(reports)


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--build")
    ap.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    ap.add_argument("--no-llm", action="store_true")
    args = ap.parse_args()
    settings = {}
    for pair in args.set:
        key, _, value = pair.partition("=")
        try:
            settings[key] = json.loads(value)
        except ValueError:
            settings[key] = value
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))  # sigwait would need a mask, and children inherit it
    stack = Stack(settings, llm=not args.no_llm, build=args.build).start()
    print(f"http://127.0.0.1:{stack.port}\nfolder {stack.dir}\nscripted model " +
          (stack.llm.base_url if stack.llm else "none (extractive)"), flush=True)
    try:
        while True:
            signal.pause()
    finally:
        for line in stack.stop():
            print(line)


if __name__ == "__main__":
    main()
