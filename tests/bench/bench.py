"""The rows of the speed table: each prints its figure, its bar and whether it holds.

Figures are ratios or counts of one run wherever a ratio exists: machines are noisy.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import locomo  # noqa: E402
from stack import Api, Stack, build_dir, free_port, ok, wait_for  # noqa: E402

ROWS = []
LINES = []


def row(name, bar):
    def register(fn):
        ROWS.append((name, bar, fn))
        return fn
    return register


def report(what, figure, bar, holds):
    verdict = "" if holds is None else ("holds" if holds else "MISSED")
    LINES.append((what, figure, bar, verdict))
    print(f"{what:58} {figure:34} {bar:28} {verdict}", flush=True)


def wrk(port, path, seconds=3, clients=16, headers=()):
    """Requests a second; every answer must be 2xx or 304."""
    argv = ["wrk", "-t1", f"-c{clients}", f"-d{seconds}s"]
    for h in headers:
        argv += ["-H", h]
    p = subprocess.run([*argv, f"http://127.0.0.1:{port}{path}"], capture_output=True, text=True, check=True)
    assert "Non-2xx" not in p.stdout, p.stdout
    return float(re.search(r"Requests/sec:\s+([0-9.]+)", p.stdout).group(1))


def median_ms(samples):
    return statistics.median(samples) * 1000


def percentile(samples, share):
    return sorted(samples)[min(len(samples) - 1, int(len(samples) * share))]


def statements(stack):
    """Statements the server has executed so far."""
    return int(stack.sql("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'")[0]["Value"])


def words(n, seed):
    """A sentence of n words out of a fixed list, different for each seed."""
    stock = ("river garden engine paper silver morning window market harbour letter forest signal copper "
             "winter teacher bridge machine yellow station coffee island mirror valley thunder pocket ribbon "
             "candle ladder meadow anchor basket compass lantern orchard pebble quarry saddle timber").split()
    state, out = seed * 2654435761 % 2**32, []
    for _ in range(n):
        state = (state * 1103515245 + 12345) % 2**31
        out.append(stock[(state >> 8) % len(stock)])
    return " ".join(out)


class Bench:
    """One server for all rows, with a model of 3 KB."""

    def __init__(self, locomo):
        self.locomo = locomo
        self.stack = Stack(settings={"fastcgi_threads": 16, "log_level": "warning"}).start()
        self.api = self.stack.api()
        self.bank = self.stack.bank("bench", make=True)
        self.model_id = "three-kb"
        made = ok(self.bank.post("/mental-models", {"id": self.model_id, "name": "Three KB",
                                                    "source_query": "What is known?", "tags": ["a", "b"]}))
        self.bank.wait(made["operation_id"])
        text = "\n\n".join(words(12, i) for i in range(38))[:3000] + "\n"
        self.stack.sql("UPDATE mental_models SET content = %s WHERE id = %s", text, self.model_id)

    def model_path(self, detail):
        return f"{self.bank.path}/mental-models/{self.model_id}?detail={detail}"

    def start_bare(self):
        s = self.stack
        bank_no = s.sql("SELECT bank_no FROM banks WHERE bank_id = 'bench'")[0]["bank_no"]
        path = s.run / "bare.sock"
        s.spawn("bare", [build_dir() / "bare", path, s.run / "db.sock", bank_no, self.model_id, 16])
        wait_for("the bare program", path.exists)
        port = free_port()
        conf = s.run / "bare.conf"
        conf.write_text(
            f"{'user root;' if os.geteuid() == 0 else ''}\nworker_processes 1;\npid {s.run}/bare-nginx.pid;\n"
            f"events {{ worker_connections 1024; }}\nhttp {{ access_log off; client_body_temp_path {s.run}/cb;\n"
            f"fastcgi_temp_path {s.run}/fc; server {{ listen 127.0.0.1:{port};\n"
            f"location / {{ include /etc/nginx/fastcgi_params; fastcgi_pass unix:{path}; }} }} }}\n")
        s.spawn("bare-nginx", ["nginx", "-p", s.run, "-c", conf, "-g", "daemon off;", "-e", s.logs / "bare.log"])
        wait_for("nginx of the bare program", lambda: reachable(port))
        return port


def reachable(port):
    try:
        return Api(port).get("/").status == 200
    except OSError:
        return False


@row("model", "at least 0.75 of a bare program")
def one_model(b):
    bare = b.start_bare()
    path = b.model_path("content")
    ours_size, bare_size = len(b.api.get(path).body), len(Api(bare).get("/").body)
    wrk(b.stack.port, path, 1)
    wrk(bare, "/", 1)
    rounds = [(wrk(b.stack.port, path, 2), wrk(bare, "/", 2)) for _ in range(5)]
    ratio = statistics.median(a / c for a, c in rounds)
    ours = statistics.median(a for a, _ in rounds)
    report("GET one model, 3 KB, 16 clients: ours / bare", f"{ratio:.2f} ({ours:.0f}/s; {ours_size}, {bare_size} B)",
           ">= 0.75", ratio >= 0.75)


@row("etag", "304 faster than 200")
def not_modified(b):
    path = b.model_path("content")
    etag = b.api.get(path).headers["ETag"]
    rounds = [(wrk(b.stack.port, path, 2, headers=[f"If-None-Match: {etag}"]), wrk(b.stack.port, path, 2))
              for _ in range(3)]
    ratio = statistics.median(a / c for a, c in rounds)
    report("the same with If-None-Match: 304 / 200", f"{ratio:.2f}", "> 1", ratio > 1)


@row("list", "at most 4 statements")
def list_models(b):
    bank = b.stack.bank("bench-list", make=True)
    for i in range(100):
        ok(bank.post("/mental-models", {"name": f"Model {i}", "source_query": "What?", "tags": [f"tag-{i % 20}"]}))
    bank.idle(120)
    bank.retain("Something new happened.", tags=["tag-3"])
    bank.idle(60)
    used = []
    for _ in range(5):  # the worker looks at its queue now and then: the smallest difference is the list's own
        before = statements(b.stack)
        answer = ok(bank.get("/mental-models", limit=100))
        used.append(statements(b.stack) - before)
    used = min(used)
    stale = sum(1 for m in answer["items"] if m["is_stale"])
    rate = wrk(b.stack.port, f"{bank.path}/mental-models?limit=100", 2)
    report("list 100 models with is_stale: statements", f"{used} ({stale} stale; {rate:.0f}/s)", "<= 4", used <= 4)


@row("refresh", "p50 at most 20 ms")
def queued_refresh(b):
    bank = b.stack.bank("bench-refresh", make=True)
    bank.retain("The lighthouse keeper paints the door green.")
    model = bank.model("Lighthouse", "What does the keeper do?")
    samples = []
    for _ in range(25):
        b.stack.llm.reset()
        bank.idle()
        started = time.time()
        op = ok(bank.post(f"/mental-models/{model['id']}/refresh"))
        bank.wait(op["operation_id"])
        first = min(c["started"] for c in b.stack.llm.chats())
        samples.append(first - started)
    p50 = median_ms(samples)
    report("queued refresh until its first model call, p50", f"{p50:.1f} ms (p95 {percentile(samples, .95) * 1000:.1f})",
           "<= 20 ms", p50 <= 20)


def pss_kb(pid):
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.search(r"^Pss:\s+(\d+)", text, re.M).group(1)), int(re.search(r"^Rss:\s+(\d+)", text, re.M).group(1))


@row("memory", "at most 40 MB")
def idle_memory(b):
    s = Stack(llm=False).start()
    try:
        s.api().get("/v1/default/banks")
        time.sleep(1)
        names = [*s.program_names, "worker"]
        sizes = [pss_kb(s.processes[n].pid) for n in names]
        pss, rss = (sum(x) / 1024 for x in zip(*sizes))
        each = ", ".join(f"{n} {p / 1024:.1f}" for n, (p, _) in zip(names, sizes))
        report("memory of all programs and the worker, idle, PSS", f"{pss:.1f} MB (RSS {rss:.1f})", "<= 40 MB", pss <= 40)
        print(f"    {each}")
    finally:
        s.stop()


@row("busy", "at most 200 MB a program")
def busy_memory(b):
    """Every long call a program of 64 threads takes is waiting for its model at the same time."""
    s = Stack(settings={"log_level": "warning", "fastcgi_threads": 64}).start()
    try:
        bank = s.bank("bench-busy", make=True)
        bank.retain("The lighthouse keeper paints the door green.")
        bank.idle()
        s.llm.script({"scope": "reflect*", "reply": {"delay": 3}})
        with concurrent.futures.ThreadPoolExecutor(48) as pool:
            waiting = [pool.submit(bank.post, "/reflect", {"query": f"{i}?", "include": {"facts": {}}}) for i in range(48)]
            time.sleep(8)
            pss, rss = (kb / 1024 for kb in pss_kb(s.processes["reflect"].pid))
            statuses = {w.result().status for w in waiting}
        assert statuses == {200}, statuses
        report("memory of reflect, 48 questions under way, PSS", f"{pss:.1f} MB (RSS {rss:.1f})", "<= 200 MB", pss <= 200)
    finally:
        s.stop()


@row("start", "at most 3 s")
def second_start(b):
    folder = b.stack.dir / "quick"
    port = free_port()
    command = ["sh", "conf/quickstart", "--dir", str(folder), "--port", str(port), "--no-demo", "--detach"]
    source = pathlib.Path(__file__).resolve().parents[2]
    env = {k: v for k, v in os.environ.items() if k != "HS_BUILD"}

    def start():
        started = time.monotonic()
        subprocess.run(command, cwd=source, check=True, stdout=subprocess.DEVNULL, env=env)
        return time.monotonic() - started

    def stop():
        subprocess.run([*command[:4], "--stop"], cwd=source, check=True, stdout=subprocess.DEVNULL, env=env)

    try:
        first = start()
        stop()
        again = []
        for _ in range(3):
            again.append(start())
            stop()
    finally:
        stop()
    report("second quickstart on the same folder until ready", f"{statistics.median(again):.2f} s (first {first:.0f} s)",
           "<= 3 s", statistics.median(again) <= 3)


@row("retain", "at least 150 items/s")
def retain_rate(b):
    s = Stack(llm=False, settings={"log_level": "warning", "fastcgi_threads": 16,
                                    "enable_auto_consolidation": False}).start()
    try:
        bank = s.bank("bench-retain", make=True)
        api = s.api(timeout=120)

        def one(i):
            text = " ".join(f"Person{i % 50} {words(8, i * 10 + k)}." for k in range(10))
            ok(api.post(f"{bank.path}/memories", {"items": [{"content": text, "document_id": f"d{i}"}]}))

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(one, range(40)))
            started = time.monotonic()
            list(pool.map(one, range(40, 640)))
            rate = 600 / (time.monotonic() - started)
        facts = ok(bank.get("/stats"))["total_nodes"] / 640
        report("retain of ten-fact items, extractive, 8 clients", f"{rate:.0f} items/s ({facts:.1f} facts each)",
               ">= 150", rate >= 150)
    finally:
        s.stop()


@row("recall", "p50 at most 15 ms, p95 at most 50 ms")
def recall_large(b):
    """A bank of N memories in chunks mode, hash embedder; N from HS_BENCH_MEMORIES (100,000)."""
    n = int(os.environ.get("HS_BENCH_MEMORIES", "100000"))
    s = Stack(llm=False, settings={"log_level": "warning", "enable_observations": False}).start()
    try:
        times = {}
        api = s.api(timeout=300)
        for size in (n // 10, n):
            bank = s.bank(f"bench-recall-{size}", make=True)
            ok(bank.patch("/config", {"updates": {"retain_extraction_mode": "chunks"}}))
            for start in range(0, size, 1000):
                items = [{"content": words(18, start + i) + f" item{start + i}", "document_id": f"d{start + i}"}
                         for i in range(min(1000, size - start))]
                ok(api.post(f"{bank.path}/memories", {"items": items}))
            times[size] = recall_times(bank)
        big, small = times[n], times[n // 10]
        p50, p95 = median_ms(big), percentile(big, .95) * 1000
        report(f"recall, {n} memories: p50, p95", f"{p50:.1f} ms, {p95:.1f} ms", "<= 15, <= 50 ms", p50 <= 15 and p95 <= 50)
        times10 = median_ms(big) / median_ms(small)
        report(f"recall, from {n // 10} to {n} memories", f"{times10:.1f} times slower", "<= 8", times10 <= 8)
        arms_alone(s, bank, n)
    finally:
        s.stop()


def recall_times(bank):
    """Seconds of fifty recalls, after ten to warm up."""
    samples = []
    for i in range(60):
        t = time.monotonic()
        ok(bank.post("/memories/recall", {"query": words(4, i * 7)}))
        samples.append(time.monotonic() - t)
    return samples[10:]


def arms_alone(s, big, n):
    """One arm at a time: a recall with the other arm off, less a recall that has nothing to search."""
    small, empty = s.bank("bench-small", make=True), s.bank("bench-empty", make=True)
    ok(small.patch("/config", {"updates": {"retain_extraction_mode": "chunks"}}))
    ok(small.post("/memories", {"items": [{"content": words(18, -i), "document_id": f"s{i}"} for i in range(100)]}))
    ok(big.patch("/config", {"updates": {"enable_text_search": False}}))
    vectors = median_ms(recall_times(big)) - median_ms(recall_times(empty))
    report(f"vector arm alone, {n} memories, p50", f"{vectors:.1f} ms (exact, from the database)", "<= 4 ms", vectors <= 4)
    ok(big.patch("/config", {"updates": {"enable_text_search": True}}))
    s.settings["embeddings_provider"] = "none"
    s.write_config()
    s.restart("memories")
    wait_for("memories again", lambda: empty.get("/tags").status == 200)
    nothing = median_ms(recall_times(empty))
    large, little = (median_ms(recall_times(bank)) - nothing for bank in (big, small))
    report(f"keyword arm alone, {n} memories / 100 beside, p50", f"{large:.1f} ms / {little:.2f} ms", "<= 6 / 0.3 ms",
           large <= 6 and little <= 0.3)


@row("retrieval", "recall@10 0.61, @20 0.67")
def retrieval(b):
    """Share of the evidence found on LoCoMo conversations, built-in embedder (tests/bench/locomo.py)."""
    if not b.locomo:
        report("evidence found on LoCoMo", "skipped: no --locomo FILE", "@10 0.61 @20 0.67", None)
        return
    means = locomo.run(b.locomo)["means"]
    report("evidence found on LoCoMo, hash embedder", f"@10 {means[10]:.3f} @20 {means[20]:.3f}", "@10 0.61 @20 0.67",
           not locomo.missed(means))


TRIGGER = ('{"mode":"full","budget":null,"refresh_after_consolidation":false,"refresh_cron":"%s","full_refresh_cron":null,'
           '"min_refresh_interval_seconds":null,"fact_types":null,"exclude_mental_models":false,"tags_match":null,'
           '"tag_groups":null,"keep_trace":false}')


@row("tick", "at most 1 s, a statement a page")
def refresh_tick(b):
    """10,000 models in 1,000 banks: none due; then all due and fresh."""
    s = Stack(llm=False, worker=False, programs=["banks"], settings={"consolidation_reconcile_interval_seconds": 0}).start()
    try:
        at = time.gmtime(time.time() - 300)
        s.sql("INSERT INTO banks (bank_no, bank_id, name, mission, config, created_at, updated_at) SELECT seq, "
              "CONCAT('b', seq), '', '', '{}', NOW(6), NOW(6) FROM seq_1_to_1000")
        s.sql("INSERT INTO bank_clock SELECT bank_no, NOW(6) FROM banks")
        s.sql("INSERT INTO mental_models (bank_no, id, name, source_query, content, tags, trigger_json, "
              "last_refreshed_at, read_until, has_cron, created_at) SELECT b.seq, CONCAT('m-', m.seq), 'Model', 'What?', "
              "REPEAT('text ', 600), '[\"a\"]', %s, NOW(6), NOW(6), 1, NOW(6) FROM seq_1_to_1000 b, seq_1_to_10 m",
              TRIGGER % f"{at.tm_min} {at.tm_hour} * * *")

        def run(prepare=None):
            seconds, used, line = [], [], ""
            for _ in range(5):
                s.sql("DELETE FROM server_state")
                if prepare:
                    s.sql(prepare)
                before, started = statements(s), time.monotonic()
                line = s.tick().stderr
                seconds.append(time.monotonic() - started)
                used.append(statements(s) - before)
            return statistics.median(seconds), max(used), re.search("claimed=1 (.*)", line).group(1)

        seconds, used, told = run()
        report("tick over 10,000 models in 1,000 banks, none due", f"{seconds:.2f} s, {used} statements", "<= 1 s, <= 30",
               seconds <= 1 and used <= 30 and " due=0 " in told)
        seconds, used, told = run("UPDATE mental_models SET last_cron_checked_at = NULL, last_refreshed_at = "
                                  "NOW() - INTERVAL 2 DAY")
        report("the same, all due and fresh", f"{seconds:.2f} s, {used} statements", "", None)
        print(f"    {told}")
    finally:
        s.stop()


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--locomo", help="LoCoMo file for the retrieval row; skipped without it")
    ap.add_argument("rows", nargs="*", help="names: " + ", ".join(n for n, _, _ in ROWS))
    args = ap.parse_args()
    b = Bench(args.locomo)
    try:
        for name, _, fn in ROWS:
            if not args.rows or name in args.rows:
                fn(b)
    finally:
        b.stack.stop()
    missed = [line for line in LINES if line[3] == "MISSED"]
    print(f"\n{len(LINES)} figures, {len(missed)} missed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
