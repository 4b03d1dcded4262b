#!/usr/bin/env python3
"""A scripted OpenAI-compatible model server for tests: standard library only, loopback only.

Run it:      python3 llm_server.py [--port N] [--port-file F]   prints {"port": N} and serves until killed
Or in-process: with LlmServer() as llm: llm.url, llm.script(rules), llm.calls(scope), llm.reset()

Paths:  POST [any prefix]/chat/completions, POST [any prefix]/embeddings   the two services
        POST /_script   list of rules, added behind those that stand; {"replace": true, "rules": [...]}
                        replaces them
        GET  /_calls    {"calls": [...], "in_flight": n, "max_in_flight": {scope: n, "*": n}};
                        ?scope=NAME filters
        POST /_reset    forget rules and calls, let go of everything that hangs
        GET  /_health   {"ok": true}

A call:  {n, scope, scope_n, path, headers, body, raw, rule, status, started, ended, aborted, in_flight}
         raw = the body as text; scope = X-Hindsight-Operation ("embeddings" for the embeddings path); n and scope_n from 1;
         aborted = the client closed the connection before its answer was sent.

A rule:  {"scope": "retain_*", "when": {...}, "times": 2, "reply": {...}, "note": "free text"}
         scope  name or glob; missing = every chat call (embeddings only by name)
         when   all given must hold: tool_forced (NAME: the request offers only this tool; false: not
                exactly one tool), tools_include (NAME), tools (false: none offered), n (number or list:
                which call of this scope), contains / not_contains (text or list of texts, looked for
                in the messages' text, for embeddings in the inputs), model (name)
         times  how often it may be used (missing = always)
         The first rule that fits is used; without one the server is a healthy model.

A reply: content:  "text": "..." or null; "json": any value, sent as text; "tool_calls": [{"name", "args" or
                   "raw_args" (text as it is), "id"?}]; "value": {...} merged into the healthy reply's JSON
                   or tool arguments; none of them = the healthy reply
         envelope: "finish_reason" (null = member left out), "usage" (object; null = left out), "message"
                   (members merged into the message), "choices" (as it is), "error" (top-level member)
         transport:"status" with "body" (JSON or text) and "headers"; "raw" (body text as it is);
                   "delay" seconds before the answer; "hang" true; "drip" seconds between two bytes of
                   the body; "cut" n: send n bytes of the body, then close
         embeddings: "dim" n, "value" is not used

Healthy replies: retain_extract_facts: one fact quoting the first sentence of the chunk. consolidation: one
observation per new fact, with its text. consolidation_dedup: keep. mental_model_*_ops: no operations.
Only `done` offered: done quoting what the tool messages found, with their ids (or a document). One other
tool offered: that tool, query = the question. Several: answer_ready. No tools: a text quoting what the
prompt's data blocks hold. Embeddings: hashed words, normalised, 64 numbers (or `dimensions`).
"""
import argparse
import fnmatch
import hashlib
import json
import math
import re
import select
import socket
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TEXT_MARK = "\n## TEXT\n"
FACTS_MARK = "\n## NEW FACTS\n"


def message_text(message):
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content or ""


def all_text(body):
    if "input" in body:
        given = body["input"]
        return "\n".join(given) if isinstance(given, list) else str(given)
    parts = []
    for message in body.get("messages") or []:
        parts.append(message_text(message))
        for call in message.get("tool_calls") or []:
            parts.append(call.get("function", {}).get("arguments", ""))
    return "\n".join(parts)


def last_user(body):
    for message in reversed(body.get("messages") or []):
        if message.get("role") == "user":
            return message_text(message)
    return ""


def first_user(body):
    for message in body.get("messages") or []:
        if message.get("role") == "user":
            return message_text(message)
    return ""


def tool_names(body):
    return [t.get("function", {}).get("name", "") for t in body.get("tools") or []]


def first_sentence(text):
    text = text.strip()
    match = re.match(r"(.+?[.!?])(\s|$)", text, re.S)
    return (match.group(1) if match else text.split("\n")[0]).strip()[:400]


NO_NAMES = {"The", "She", "They", "This", "That", "There", "When", "What", "Who", "Where", "Why", "How", "His",
            "Her", "Its", "Our", "And", "But", "For", "From", "Then", "Yes", "Not", "All", "Today", "Yesterday"}


def names_in(text):
    found = re.findall(r"\b[A-Z][a-z]{2,}(?: [A-Z][a-z]{2,})*\b", text)
    return [name for name in dict.fromkeys(found) if name not in NO_NAMES][:5]


def healthy_facts(body):
    user = last_user(body) if TEXT_MARK in last_user(body) else first_user(body)
    chunk = user.split(TEXT_MARK, 1)[1] if TEXT_MARK in user else user
    sentence = first_sentence(chunk)
    if not sentence:
        return {"facts": []}
    return {"facts": [{
        "what": sentence, "when": "N/A", "where": "N/A", "who": "N/A", "why": "N/A",
        "fact_kind": "conversation", "fact_type": "world", "occurred_start": None, "occurred_end": None,
        "entities": names_in(sentence), "causal_relations": []}]}


def healthy_consolidation(body):
    user = first_user(body)
    part = user.split(FACTS_MARK, 1)[1] if FACTS_MARK in user else user
    part = part.split("\n## ", 1)[0]
    creates = []
    for line in part.split("\n"):
        match = re.match(r"\[([^\]]+)\] (.*?)(?: \((?:occurred_start|occurred_end|mentioned_at)=[^()]*\))?$", line)
        if match:
            creates.append({"text": match.group(2), "source_fact_ids": [match.group(1)], "reason": "new"})
    return {"creates": creates, "updates": [], "deletes": []}


def evidence(body):
    """What the tool messages of the conversation (or fenced data of a synthesis prompt) found."""
    found = {"memories": {}, "observations": {}, "mental_models": {}}
    texts = [message_text(m) for m in body.get("messages") or [] if m.get("role") == "tool"]
    texts += re.findall(r"```json\n(.*?)\n```", last_user(body), re.S)
    for text in texts:
        try:
            value = json.loads(text)
        except ValueError:
            continue
        if not isinstance(value, dict):
            continue
        for kind, known in found.items():
            for entry in value.get(kind) or []:
                if isinstance(entry, dict) and entry.get("id"):
                    known[entry["id"]] = entry.get("text") or entry.get("content") or entry.get("snippet") or ""
        for entry in value.get("results") or []:
            memory = entry.get("memory") if isinstance(entry, dict) else None
            if memory:
                found["memories"][memory["id"]] = memory.get("text", "")
    return found


def bullets(found):
    """One bullet a statement; of documents the lines without headings and bullet signs."""
    lines = []
    for kind in ("mental_models", "observations", "memories"):
        for text in found[kind].values():
            parts = text.split("\n") if kind == "mental_models" else [text]
            for part in parts:
                part = part.strip()
                if kind == "mental_models":
                    part = "" if part.startswith("#") else part.removeprefix("- ")
                if part and "- " + part not in lines:
                    lines.append("- " + part)
    return lines


def healthy_done(body):
    found = evidence(body)
    lines = bullets(found)
    tool = next(t for t in body["tools"] if t["function"]["name"] == "done")
    properties = tool["function"].get("parameters", {}).get("properties", {})
    args = {"answer_found": bool(lines)}
    if "document" in properties:
        blocks = ["\n".join(lines)] if lines else ["Nothing is recorded about this."]
        args["document"] = {"sections": [{"heading": "What is known", "level": 2, "blocks": blocks}]}
    else:
        args["answer"] = "\n".join(lines) or "Nothing is recorded about this."
    args["memory_ids"] = list(found["memories"])
    args["observation_ids"] = list(found["observations"])
    args["mental_model_ids"] = list(found["mental_models"])
    if "directive_compliance" in properties:
        args["directive_compliance"] = "followed"
    return args


def healthy_tool(body):
    names = tool_names(body)
    if names == ["done"]:
        return "done", healthy_done(body)
    if len(names) == 1:
        name = names[0]
        args = {"reason": "asked for", "query": first_user(body).strip()[:500]}
        if name == "expand":
            args = {"reason": "context", "memory_ids": list(evidence(body)["memories"])[:3], "depth": "chunk"}
        elif name == "read_mental_models":
            args = {"reason": "details", "mental_model_ids": list(evidence(body)["mental_models"])[:3]}
        elif name == "answer_ready":
            args = {"answer_found": True}
        return name, args
    if "answer_ready" in names:
        return "answer_ready", {"answer_found": any(evidence(body).values())}
    return names[0], {}


def healthy_text(scope, body):
    if scope == "retain_extract_facts":
        return json.dumps(healthy_facts(body), ensure_ascii=False)
    if scope == "consolidation":
        return json.dumps(healthy_consolidation(body), ensure_ascii=False)
    if scope == "consolidation_dedup":
        return json.dumps({"action": "keep", "text": "", "reason": "different"})
    if scope.startswith("mental_model_"):
        return json.dumps({"operations": []})
    if scope == "reflect_structured":
        return json.dumps({"answer": first_sentence(last_user(body))}, ensure_ascii=False)
    return "\n".join(bullets(evidence(body))) or "Answer: " + first_sentence(last_user(body))


def word_vector(text, dim):
    vector = [0.0] * dim
    for word in re.findall(r"\w+", text.lower()):
        digest = hashlib.sha256(word.encode()).digest()
        for i in range(8):
            at = int.from_bytes(digest[3 * i:3 * i + 2], "big") % dim
            vector[at] += 1.0 if digest[3 * i + 2] & 1 else -1.0
    size = math.sqrt(sum(v * v for v in vector))
    if not size:
        vector[0] = size = 1.0
    return [round(v / size, 7) for v in vector]


class State:
    def __init__(self):
        self.lock = threading.Lock()
        self.release = threading.Event()
        self.clear()

    def clear(self):
        self.rules, self.calls = [], []
        self.flying, self.max_flying, self.scope_n = {}, {}, {}

    def reset(self):
        with self.lock:
            self.clear()
            self.release.set()
            self.release = threading.Event()

    def begin(self, call):
        with self.lock:
            scope = call["scope"]
            self.scope_n[scope] = self.scope_n.get(scope, 0) + 1
            call["n"], call["scope_n"] = len(self.calls) + 1, self.scope_n[scope]
            for key in (scope, "*"):
                self.flying[key] = self.flying.get(key, 0) + 1
                self.max_flying[key] = max(self.max_flying.get(key, 0), self.flying[key])
            call["in_flight"] = self.flying["*"]
            self.calls.append(call)
            rule = self.pick(call)
            call["rule"] = rule.get("note", self.rules.index(rule)) if rule else None
            return rule["reply"] if rule else {}, self.release

    def end(self, call):
        with self.lock:
            call["ended"] = time.time()
            for key in (call["scope"], "*"):
                if self.flying.get(key, 0) > 0:
                    self.flying[key] -= 1

    def pick(self, call):
        for rule in self.rules:
            scope = rule.get("scope")
            if scope is None and call["scope"] == "embeddings":
                continue
            if scope is not None and not fnmatch.fnmatchcase(call["scope"], scope):
                continue
            if rule.get("times") is not None and rule.get("_used", 0) >= rule["times"]:
                continue
            if not fits(rule.get("when") or {}, call):
                continue
            rule["_used"] = rule.get("_used", 0) + 1
            return rule
        return None


def as_list(value):
    return value if isinstance(value, list) else [value]


def fits(when, call):
    body = call["body"] if isinstance(call["body"], dict) else {}
    names = tool_names(body)
    text = all_text(body)
    for key, want in when.items():
        if key == "tool_forced":
            good = len(names) != 1 if want is False else names == [want]
        elif key == "tools_include":
            good = want in names
        elif key == "tools":
            good = bool(names) == bool(want)
        elif key == "n":
            good = call["scope_n"] in as_list(want)
        elif key == "contains":
            good = all(part in text for part in as_list(want))
        elif key == "not_contains":
            good = not any(part in text for part in as_list(want))
        elif key == "model":
            good = body.get("model") == want
        else:
            raise ValueError("unknown condition " + key)
        if not good:
            return False
    return True


KNOWN_RULE = {"scope", "when", "times", "reply", "note"}
KNOWN_REPLY = {"text", "json", "tool_calls", "value", "finish_reason", "usage", "message", "choices", "error",
               "status", "body", "headers", "raw", "delay", "hang", "drip", "cut", "dim"}
KNOWN_WHEN = {"tool_forced", "tools_include", "tools", "n", "contains", "not_contains", "model"}


def check_rules(rules):
    for rule in rules:
        wrong = set(rule) - KNOWN_RULE | set(rule.get("reply") or {}) - KNOWN_REPLY
        wrong |= set(rule.get("when") or {}) - KNOWN_WHEN
        if wrong or not isinstance(rule.get("reply"), dict):
            raise ValueError("rule not understood: %s %s" % (sorted(wrong), json.dumps(rule)[:300]))


def chat_answer(scope, body, reply, n):
    message = {"role": "assistant", "content": None}
    finish = "stop"
    if "tool_calls" in reply:
        calls = []
        for i, call in enumerate(reply["tool_calls"]):
            arguments = call["raw_args"] if "raw_args" in call else json.dumps(call.get("args", {}), ensure_ascii=False)
            calls.append({"id": call.get("id", "call_%d_%d" % (n, i)), "type": "function",
                          "function": {"name": call["name"], "arguments": arguments}})
        message["tool_calls"] = calls
        message["content"] = reply.get("text")
        finish = "tool_calls"
    elif "json" in reply:
        message["content"] = json.dumps(reply["json"], ensure_ascii=False)
    elif "text" in reply:
        message["content"] = reply["text"]
    elif body.get("tools"):
        name, args = healthy_tool(body)
        args.update(reply.get("value") or {})
        message["tool_calls"] = [{"id": "call_%d_0" % n, "type": "function",
                                  "function": {"name": name, "arguments": json.dumps(args, ensure_ascii=False)}}]
        finish = "tool_calls"
    else:
        text = healthy_text(scope, body)
        if reply.get("value"):
            text = json.dumps({**json.loads(text), **reply["value"]}, ensure_ascii=False)
        message["content"] = text
    message.update(reply.get("message") or {})
    choice = {"index": 0, "message": message, "finish_reason": reply.get("finish_reason", finish)}
    if choice["finish_reason"] is None:
        del choice["finish_reason"]
    prompt = max(1, len(all_text(body)) // 4)
    output = max(1, len(json.dumps(message)) // 4)
    answer = {"id": "chatcmpl-%d" % n, "object": "chat.completion", "created": int(time.time()),
              "model": body.get("model", ""), "choices": reply.get("choices", [choice]),
              "usage": reply.get("usage", {"prompt_tokens": prompt, "completion_tokens": output,
                                           "total_tokens": prompt + output})}
    if answer["usage"] is None:
        del answer["usage"]
    if "error" in reply:
        answer["error"] = reply["error"]
    return answer


def embeddings_answer(body, reply):
    given = body.get("input", [])
    texts = given if isinstance(given, list) else [given]
    dim = reply.get("dim") or body.get("dimensions") or 64
    tokens = sum(len(t) // 4 + 1 for t in texts)
    return {"object": "list", "model": body.get("model", ""),
            "data": [{"object": "embedding", "index": i, "embedding": word_vector(t, dim)}
                     for i, t in enumerate(texts)],
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    state = None

    def log_message(self, *args):
        pass

    def send_bytes(self, status, data, headers=None, drip=None, cut=None):
        self.send_response(status)
        sent = {"Content-Type": "application/json"}
        sent.update(headers or {})
        for name, value in sent.items():
            self.send_header(name, str(value))
        self.send_header("Content-Length", str(len(data)))
        if cut is not None:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        if cut is not None:
            data = data[:cut]
        if drip is None:
            self.wfile.write(data)
            return
        for i in range(len(data)):
            self.wfile.write(data[i:i + 1])
            self.wfile.flush()
            if self.client_gone(drip):
                raise ConnectionResetError("client gone")

    def send_json(self, status, value):
        self.send_bytes(status, json.dumps(value).encode())

    def client_gone(self, seconds, release=None):
        """Wait; True as soon as the client has closed its side."""
        end = time.monotonic() + seconds
        while True:
            left = end - time.monotonic()
            if release is not None and release.is_set():
                return False
            if left <= 0:
                return False
            ready, _, _ = select.select([self.connection], [], [], min(left, 0.05))
            if ready:
                try:
                    if self.connection.recv(1, socket.MSG_PEEK) == b"":
                        return True
                except OSError:
                    return True
                time.sleep(min(left, 0.02))

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        if url.path == "/_health":
            return self.send_json(200, {"ok": True})
        if url.path != "/_calls":
            return self.send_json(404, {"error": {"message": "no such path"}})
        wanted = urllib.parse.parse_qs(url.query).get("scope")
        with self.state.lock:
            calls = [c for c in self.state.calls if not wanted or fnmatch.fnmatchcase(c["scope"], wanted[0])]
            text = json.dumps({"calls": calls, "in_flight": self.state.flying.get("*", 0),
                               "max_in_flight": self.state.max_flying})
        return self.send_bytes(200, text.encode())

    def read_body(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            parts = []
            while True:
                size = int(self.rfile.readline().split(b";")[0], 16)
                parts.append(self.rfile.read(size))
                self.rfile.readline()
                if not size:
                    return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def do_POST(self):
        raw = self.read_body()
        path = urllib.parse.urlsplit(self.path).path
        if path == "/_reset":
            self.state.reset()
            return self.send_json(200, {"ok": True})
        if path == "/_script":
            return self.take_script(raw)
        if path.endswith("/chat/completions") or path.endswith("/embeddings"):
            return self.serve(raw, path.endswith("/embeddings"))
        return self.send_json(404, {"error": {"message": "no such path"}})

    def take_script(self, raw):
        try:
            given = json.loads(raw)
            rules = given["rules"] if isinstance(given, dict) else given
            check_rules(rules)
        except (ValueError, KeyError, TypeError) as fault:
            return self.send_json(400, {"error": str(fault)})
        with self.state.lock:
            if isinstance(given, dict) and given.get("replace"):
                self.state.rules = []
            self.state.rules.extend(rules)
        return self.send_json(200, {"rules": len(self.state.rules)})

    def serve(self, raw, embeddings):
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        scope = "embeddings" if embeddings else self.headers.get("X-Hindsight-Operation", "")
        call = {"n": 0, "scope": scope, "scope_n": 0, "path": self.path, "body": body,
                "headers": {k.lower(): v for k, v in self.headers.items()},
                "raw": raw.decode("utf-8", "replace"),
                "rule": None, "status": None, "started": time.time(), "ended": None, "aborted": False,
                "in_flight": 0}
        reply, release = self.state.begin(call)
        try:
            self.answer(call, reply, release, embeddings)
        except OSError:
            call["aborted"] = True
            self.close_connection = True
        finally:
            self.state.end(call)

    def answer(self, call, reply, release, embeddings):
        body = call["body"] if isinstance(call["body"], dict) else {}
        wait = 86400 if reply.get("hang") else reply.get("delay", 0)
        if wait and self.client_gone(wait, release):
            raise ConnectionResetError("client gone")
        if reply.get("hang"):
            self.close_connection = True
            return
        status = call["status"] = reply.get("status", 200)
        if "raw" in reply:
            data = reply["raw"]
        elif "body" in reply or status != 200:
            data = reply.get("body", {"error": {"message": "scripted failure %d" % status, "type": "scripted"}})
        elif embeddings:
            data = embeddings_answer(body, reply)
        else:
            data = chat_answer(call["scope"], body, reply, call["n"])
        if not isinstance(data, str):
            data = json.dumps(data, ensure_ascii=False)
        self.send_bytes(status, data.encode("utf-8", "surrogatepass"), reply.get("headers"), reply.get("drip"),
                        reply.get("cut"))


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


class LlmServer:
    """The server in this process, for tests that want no child process."""

    def __init__(self, port=0):
        self.state = State()
        handler = type("BoundHandler", (Handler,), {"state": self.state})
        self.httpd = Server(("127.0.0.1", port), handler)
        self.port = self.httpd.server_address[1]
        self.url = "http://127.0.0.1:%d/v1" % self.port
        self.thread = threading.Thread(target=self.httpd.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)

    def start(self):
        self.thread.start()
        return self

    def stop(self):
        self.state.reset()
        self.httpd.shutdown()
        self.httpd.server_close()

    __enter__ = start

    def __exit__(self, *exc):
        self.stop()

    def script(self, rules, replace=False):
        check_rules(rules)
        with self.state.lock:
            if replace:
                self.state.rules = []
            self.state.rules.extend(json.loads(json.dumps(rules)))

    def calls(self, scope=None):
        with self.state.lock:
            return [dict(c) for c in self.state.calls if scope is None or fnmatch.fnmatchcase(c["scope"], scope)]

    def reset(self):
        self.state.reset()


def main():
    parser = argparse.ArgumentParser(description="scripted OpenAI-compatible model server for tests")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", help="write the port here when listening")
    args = parser.parse_args()
    server = LlmServer(args.port)
    print(json.dumps({"port": server.port}), flush=True)
    if args.port_file:
        with open(args.port_file, "w", encoding="ascii") as out:
            out.write("%d\n" % server.port)
    try:
        server.httpd.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
