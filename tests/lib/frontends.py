"""Other web servers in front of the programs: nginx with fcgiwrap, Apache with mod_cgi, Apache with mod_proxy_fcgi.

Each uses the files of conf/ with their paths changed, listens on a port the kernel chose and is ended by pid.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
from signal import SIGTERM

from stack import PROGRAMS, SOURCE, Api, Bank, free_port, program_path, wait_for

MODULES = pathlib.Path("/usr/lib/apache2/modules")
WEB_USER = "www-data"  # Apache refuses to serve as root
CRON_ENV = {"PATH": "/usr/bin:/bin", "HOME": "/", "SHELL": "/bin/sh", "LOGNAME": "nobody"}


def as_root():
    return os.geteuid() == 0


class FrontEnd:
    """One web server on the database of a stack; start() fills port."""

    name = base = ""
    plain_cgi = True
    raw_paths = True  # %2F, %00 and broken escapes reach the programs

    def __init__(self, stack):
        self.stack = stack
        self.sessions = []
        self.port = None
        self.top = stack.dir / self.name
        self.log = stack.logs / f"{self.name}.log"
        self.config = stack.config

    def start(self):
        self.top.mkdir()
        try:
            self.make()
            self.wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self):
        for name, p in self.stack.processes.items():
            if name.startswith(self.name):
                p.stop()
        for leader in self.sessions:
            try:  # fcgiwrap's children outlive it
                os.killpg(leader, SIGTERM)
            except ProcessLookupError:
                pass

    def spawn_session(self, name, argv):
        """In a session of its own: fcgiwrap and Apache signal their whole process group at their end."""
        self.sessions.append(self.stack.spawn(name, ["setsid", *argv]).pid)

    def wait_ready(self):
        api = self.api()

        def ready():
            try:
                return api.get(self.base + "/health/ready").status == 200
            except OSError:
                return False
        wait_for(f"{self.name}: /health/ready", ready)

    def api(self, **headers):
        key = self.stack.settings.get("tenant_api_key")
        return Api(self.port, headers={**({"Authorization": "Bearer " + key} if key else {}), **headers})

    def bank(self, bank_id):
        b = Bank(self.api(), bank_id)
        b.path = self.base + b.path
        return b

    # pieces

    def write_config(self):
        """hindsight.yaml as the stack's, with this base path and a run_dir of its own."""
        run = self.top / "run"
        run.mkdir()
        lines = [line for line in self.stack.config.read_text().splitlines()
                 if not line.startswith(("run_dir:", "base_path:", "worker_poll"))]
        lines += [f"run_dir: {json.dumps(str(run))}", f"base_path: {json.dumps(self.base)}"]
        self.config = self.top / "hindsight.yaml"
        self.config.write_text("\n".join(lines) + "\n")
        if as_root():
            shutil.chown(run, WEB_USER)

    def copy_programs(self, folder, names):
        folder.mkdir(parents=True)
        for name in names:
            shutil.copy(program_path(name, self.stack.build), folder)

    def cron(self, name, *args):
        """What a line of a crontab does."""
        program = self.top / "hindsight" / f"hindsight-{name}"
        program.parent.mkdir(exist_ok=True)
        if not program.exists():
            shutil.copy(program_path(name, self.stack.build), program)
        above = self.config.parent == self.top
        done = subprocess.run([program, *args, *([] if above else ["--config", self.config])], env=CRON_ENV, cwd="/",
                              capture_output=True, text=True, timeout=60,
                              user=WEB_USER if as_root() and above else None)
        assert done.returncode == 0 and "Sanitizer" not in done.stderr, done.stderr

    def drain(self):
        self.cron("worker", "--drain")

    def start_nginx(self, edit):
        text = (SOURCE / "conf/nginx/hindsight.conf.in").read_text()
        self.port = free_port()
        values = {"RUN_DIR": self.top, "LOG_DIR": self.stack.logs, "LISTEN": f"127.0.0.1:{self.port}",
                  "USER": "user root;" if as_root() else ""}
        text = re.sub(r"@([A-Z_]+)@", lambda m: str(values[m.group(1)]), text)
        (self.top / "nginx.conf").write_text(edit(text))
        self.stack.spawn(self.name + "-nginx", ["nginx", "-p", self.top, "-c", self.top / "nginx.conf",
                                                "-g", "daemon off;", "-e", self.log])

    def start_apache(self, modules, text, mpm="prefork"):
        loaded = ["mpm_" + mpm, "authz_core", "rewrite", "headers", "unique_id", *modules]
        lines = [f"LoadModule {m}_module {MODULES}/mod_{m}.so" for m in loaded]
        lines += [f"ServerRoot {self.top}", "ServerName hindsight", f"PidFile {self.top}/apache.pid",
                  f"DefaultRuntimeDir {self.top}", f"ErrorLog {self.log}", "LogLevel warn",
                  "StartServers 2", f"ScriptSock {self.top}/cgid.sock" if "cgid" in modules else ""]
        if as_root():
            lines += [f"User {WEB_USER}", f"Group {WEB_USER}"]
        (self.top / "apache.conf").write_text("\n".join(lines) + "\n" + text)
        self.spawn_session(self.name + "-apache", ["apache2", "-f", self.top / "apache.conf", "-D", "FOREGROUND"])


class FcgiWrap(FrontEnd):
    """nginx and fcgiwrap: one process a request, below a path as the site's comments say."""

    name, base = "fcgiwrap", "/deep/memory"

    def make(self):
        self.write_config()
        self.copy_programs(self.top / "cgi", PROGRAMS)
        sock = self.top / "fcgiwrap.sock"
        self.spawn_session("fcgiwrap", ["fcgiwrap", "-c", "4", "-s", f"unix:{sock}"])
        wait_for("fcgiwrap", sock.exists)

        def edit(text):
            text = text.replace("~^/", f"~^{self.base}/")
            return re.sub(r"fastcgi_pass unix:\S+;",
                          f"fastcgi_pass unix:{sock};\nfastcgi_param SCRIPT_FILENAME {self.top}/cgi/hindsight-$hs_program;",
                          text)
        self.start_nginx(edit)


class ApacheCgi(FrontEnd):
    """A shared host: a document root, a folder with .htaccess and the programs, settings above them."""

    name, base = "htaccess", "/hindsight"
    raw_paths = False
    module, mpm = "cgi", "prefork"

    def make(self):
        self.write_config()
        folder = self.top / "www/hindsight"
        self.copy_programs(folder, PROGRAMS)
        shutil.copy(SOURCE / "conf/apache/htaccess", folder / ".htaccess")
        self.port = free_port()
        self.start_apache([self.module], f"""
Listen 127.0.0.1:{self.port}
DocumentRoot {self.top}/www
<Directory {self.top}/www>
	AllowOverride FileInfo Options
	Require all granted
</Directory>
""", self.mpm)


class ApacheCgid(ApacheCgi):
    """The same where Apache runs threads: a daemon of its own starts the programs, by their bare names."""

    name = "cgid"
    module, mpm = "cgid", "event"


class ApacheProxy(FrontEnd):
    """The installed site: mod_proxy_fcgi to the sockets of the running programs."""

    name = "proxy"
    plain_cgi = False

    def make(self):
        self.start_site(self.stack.run)

    def start_site(self, run):
        self.sockets = run
        self.port = free_port()
        for name in PROGRAMS:
            os.chmod(run / f"{name}.sock", 0o666)
        text = (SOURCE / "conf/apache/hindsight.conf").read_text()
        text = text.replace("/run/hindsight-web", str(run)).replace("127.0.0.1:8888", f"127.0.0.1:{self.port}")
        text = text.replace("Define HINDSIGHT_BASE /", f"Define HINDSIGHT_BASE {self.base}/")
        self.start_apache(["proxy", "proxy_fcgi"], text)


class ApacheProxyBelow(ApacheProxy):
    """The same below a path, with programs of its own."""

    name, base = "below", "/site/memory"

    def make(self):
        self.write_config()
        for name in PROGRAMS:
            sock = self.top / f"run/{name}.sock"
            self.stack.spawn(f"below-{name}", [program_path(name, self.stack.build), "--config", self.config,
                                               "--socket", sock])
            wait_for(f"hindsight-{name}", sock.exists)
        self.start_site(self.top / "run")


FRONT_ENDS = [FcgiWrap, ApacheCgi, ApacheCgid, ApacheProxy, ApacheProxyBelow]
