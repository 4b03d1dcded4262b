"""Retrieval quality on LoCoMo conversations: the share of the evidence found among the first k results.

Each turn is retained as one memory in chunks mode (text = speaker, turn and image caption); questions are
those of categories 1-4. The data is not part of the project: give its path.

    python3 tests/bench/locomo.py locomo-dev.json [--set recall_semantic_weight=0.2]... [--conversations N]
"""
import argparse
import datetime
import json
import pathlib
import re
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

from stack import Stack, ok  # noqa: E402

KS = (5, 10, 20, 50)
BARS = {10: 0.61, 20: 0.67}   # plain BM25 with Snowball stems over the same turns
BATCH = 200


def text_of(turn):
    caption = f" [image: {turn['image_caption']}]" if turn.get("image_caption") else ""
    return f"{turn['speaker']}: {turn['text']}{caption}"


def session_time(text):
    """'1:56 pm on 8 May, 2023' as ISO."""
    when = datetime.datetime.strptime(re.sub(r"\s+", " ", text.strip()), "%I:%M %p on %d %B, %Y")
    return when.isoformat() + "+00:00"


def retain(bank, conversation):
    items = []
    for session in conversation["sessions"]:
        when = session_time(session["date_time"])
        for turn in session["turns"]:
            items.append({"content": text_of(turn), "document_id": turn["id"], "timestamp": when})
    for i in range(0, len(items), BATCH):
        ok(bank.post("/memories", {"items": items[i:i + BATCH]}))
    return len(items)


def questions(conversation):
    for q in conversation["qa"]:
        if q["category"] <= 4 and re.search(r"D\d+:\d+", " ".join(q.get("evidence") or [])):
            yield q


def measure(bank, conversation, found, slow):
    for q in questions(conversation):
        started = time.monotonic()
        answer = ok(bank.post("/memories/recall", {
            "query": q["question"], "max_tokens": 100000, "types": ["world"], "include": {"entities": None}}))
        slow.append(time.monotonic() - started)
        ranked = [r["document_id"] for r in answer["results"]]
        evidence = set(re.findall(r"D\d+:\d+", " ".join(q["evidence"])))
        for k in KS:
            found[k].append(len(evidence & set(ranked[:k])) / len(evidence))


def run(path, settings=None, build=None, conversations=0):
    """Store and ask: {"means": {k: share}, "turns", "stored_s", "questions", "median_ms"}."""
    data = json.loads(pathlib.Path(path).read_text())[:conversations or None]
    found, slow, banks, turns = {k: [] for k in KS}, [], [], 0
    values = {"retain_extraction_mode": "chunks", "enable_observations": False, **(settings or {})}
    with Stack(values, llm=False, worker=False, build=build) as stack:
        started = time.monotonic()
        for conversation in data:
            bank = stack.bank(make=True)
            turns += retain(bank, conversation)
            banks.append(bank)
        stored = time.monotonic() - started
        for bank, conversation in zip(banks, data):
            measure(bank, conversation, found, slow)
    return {"means": {k: sum(v) / len(v) for k, v in found.items()}, "turns": turns, "stored_s": stored,
            "questions": len(slow), "median_ms": statistics.median(slow) * 1000}


def missed(means):
    return [k for k, bar in BARS.items() if round(means[k], 2) < bar]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("path")
    ap.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    ap.add_argument("--build")
    ap.add_argument("--conversations", type=int, default=0, help="only the first N")
    args = ap.parse_args()
    settings = {}
    for pair in args.set:
        key, _, value = pair.partition("=")
        try:
            settings[key] = json.loads(value)
        except ValueError:
            settings[key] = value
    r = run(args.path, settings, args.build, args.conversations)
    print(f"{r['turns']} turns stored in {r['stored_s']:.1f} s; {r['questions']} questions, "
          f"median {r['median_ms']:.1f} ms")
    print("  ".join(f"recall@{k} {r['means'][k]:.3f}" for k in KS))
    print("MISSED at " + ", ".join(map(str, missed(r["means"]))) if missed(r["means"]) else "holds")
    return 1 if missed(r["means"]) else 0


if __name__ == "__main__":
    sys.exit(main())
