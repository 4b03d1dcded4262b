"""Retrieval quality on LoCoMo conversations: the share of the evidence found among the first k results.

Each turn is retained as one memory in chunks mode (text = speaker, turn and image caption); questions are
those of categories 1-4. The data is not part of the project: give its path.

    python3 tests/bench/locomo.py locomo-dev.json [--set recall_semantic_weight=0.2]... [--limit N]
"""
import argparse
import datetime
import json
import pathlib
import re
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


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("path")
    ap.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    ap.add_argument("--build")
    ap.add_argument("--conversations", type=int, default=0, help="only the first N")
    args = ap.parse_args()
    settings = {"retain_extraction_mode": "chunks", "enable_observations": False}
    for pair in args.set:
        key, _, value = pair.partition("=")
        try:
            settings[key] = json.loads(value)
        except ValueError:
            settings[key] = value
    data = json.loads(pathlib.Path(args.path).read_text())
    data = data[:args.conversations or None]
    found, slow, turns = {k: [] for k in KS}, [], 0
    stack = Stack(settings, llm=False, worker=False, build=args.build)
    with stack:
        started = time.monotonic()
        banks = []
        for conversation in data:
            bank = stack.bank(make=True)
            turns += retain(bank, conversation)
            banks.append(bank)
        stored = time.monotonic() - started
        for bank, conversation in zip(banks, data):
            measure(bank, conversation, found, slow)
    means = {k: sum(v) / len(v) for k, v in found.items()}
    slow.sort()
    print(f"{turns} turns stored in {stored:.1f} s; {len(slow)} questions, median {slow[len(slow) // 2] * 1000:.1f} ms")
    print("  ".join(f"recall@{k} {means[k]:.3f}" for k in KS))
    missed = [k for k, bar in BARS.items() if round(means[k], 2) < bar]
    print("holds" if not missed else "MISSED at " + ", ".join(map(str, missed)))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
