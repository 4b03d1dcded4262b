"""What must be true of the rows of a hindsight database, whatever happened to it.

faults(stack) recounts every stored counter and looks for rows that belong to nothing; it gives one line
a fault. As a program it looks at a server that `stack.py` runs: python3 tests/lib/consistency.py SOCKET
"""
import collections
import datetime
import json
import struct
import sys

import pymysql

PAIR_NAMES = 64  # HS_ENTITY_PAIR_NAMES
TYPES = {"world": 0, "experience": 1, "observation": 2}
# tables whose rows hang on a bank, and tables whose rows hang on a unit, by the columns that name it
BANK_TABLES = ["bank_clock", "documents", "document_tags", "chunks", "memory_units", "unit_tags",
               "observation_sources", "observation_history", "entities", "unit_entities", "entity_cooccurrences",
               "memory_links", "postings", "posting_terms", "posting_stats", "unit_embeddings", "mental_models",
               "mental_model_tags", "mental_model_history", "directives", "directive_tags", "async_operations"]
UNIT_COLUMNS = [("unit_tags", "unit_no"), ("unit_entities", "unit_no"), ("postings", "unit_no"),
                ("unit_embeddings", "unit_no"), ("memory_links", "from_no"), ("memory_links", "to_no"),
                ("observation_sources", "observation_no"), ("observation_sources", "source_no"),
                ("observation_history", "observation_no")]
# two columns of one row that must agree: statement that yields the rows where they do not
RECOUNTS = {
    "mention_count": """SELECT e.bank_no, e.canonical_name AS what, e.mention_count AS stored,
        (SELECT COUNT(*) FROM unit_entities u WHERE u.bank_no = e.bank_no AND u.entity_no = e.entity_no) AS counted
        FROM entities e HAVING stored <> counted""",
    "proof_count": """SELECT o.bank_no, o.id AS what, o.proof_count AS stored,
        (SELECT COUNT(DISTINCT s.source_no) FROM observation_sources s JOIN memory_units f ON f.bank_no = s.bank_no
        AND f.unit_no = s.source_no AND f.fact_type <> 'observation' WHERE s.bank_no = o.bank_no
        AND s.observation_no = o.unit_no) AS counted FROM memory_units o WHERE o.fact_type = 'observation'
        HAVING stored IS NULL OR stored <> counted OR counted = 0""",
    "df": """SELECT t.bank_no, t.term AS what, t.df AS stored, (SELECT COUNT(*) FROM postings p
        WHERE p.bank_no = t.bank_no AND p.term = t.term) AS counted FROM posting_terms t
        HAVING stored <> counted OR stored = 0""",
    "terms without df": """SELECT DISTINCT p.bank_no, p.term AS what, NULL AS stored, NULL AS counted FROM postings p
        LEFT JOIN posting_terms t ON t.bank_no = p.bank_no AND t.term = p.term WHERE t.term IS NULL""",
    "bank clock": """SELECT c.bank_no, 'last_write_at' AS what, c.last_write_at AS stored, MAX(u.updated_at) AS counted
        FROM bank_clock c JOIN memory_units u ON u.bank_no = c.bank_no GROUP BY c.bank_no
        HAVING stored < counted""",
    "fact of no document": """SELECT u.bank_no, u.id AS what, u.document_id AS stored, NULL AS counted
        FROM memory_units u LEFT JOIN documents d ON d.bank_no = u.bank_no AND d.document_id = u.document_id
        WHERE u.document_id IS NOT NULL AND d.document_id IS NULL""",
    "fact of no chunk": """SELECT u.bank_no, u.id AS what, u.chunk_index AS stored, NULL AS counted
        FROM memory_units u LEFT JOIN chunks c ON c.bank_no = u.bank_no AND c.document_id = u.document_id
        AND c.chunk_index = u.chunk_index WHERE u.chunk_index IS NOT NULL AND c.document_id IS NULL""",
    "chunk of no document": """SELECT c.bank_no, c.document_id AS what, c.chunk_index AS stored, NULL AS counted
        FROM chunks c LEFT JOIN documents d ON d.bank_no = c.bank_no AND d.document_id = c.document_id
        WHERE d.document_id IS NULL""",
    "gap in chunks": """SELECT c.bank_no, c.document_id AS what, COUNT(*) AS stored, MAX(c.chunk_index) + 1 AS counted
        FROM chunks c GROUP BY c.bank_no, c.document_id HAVING stored <> counted""",
    "unit without a vector of its type": """SELECT u.bank_no, u.id AS what, e.fact_type AS stored, NULL AS counted
        FROM memory_units u LEFT JOIN unit_embeddings e ON e.bank_no = u.bank_no AND e.unit_no = u.unit_no
        WHERE e.unit_no IS NULL OR e.fact_type <> FIND_IN_SET(u.fact_type, 'world,experience,observation') - 1""",
    "history of no model": """SELECT h.bank_no, h.mental_model_id AS what, h.kind AS stored, NULL AS counted
        FROM mental_model_history h LEFT JOIN mental_models m ON m.bank_no = h.bank_no AND m.id = h.mental_model_id
        WHERE m.id IS NULL""",
    "model that never refreshes": """SELECT m.bank_no, m.id AS what, NULL AS stored, NULL AS counted
        FROM mental_models m WHERE NOT EXISTS (SELECT 1 FROM async_operations o WHERE o.bank_no = m.bank_no
        AND o.operation_type = 'refresh_mental_model' AND o.subject_id = m.id)""",
    "run key": """SELECT o.bank_no, o.operation_id AS what, o.status AS stored, HEX(o.run_key) AS counted
        FROM async_operations o WHERE (o.status = 'processing') <> (o.lease_until IS NOT NULL)
        OR (o.run_key IS NOT NULL) <> (o.status = 'processing' AND o.subject_id IS NOT NULL)""",
    "one subject run twice": """SELECT o.bank_no, o.subject_id AS what, COUNT(*) AS stored, 1 AS counted
        FROM async_operations o WHERE o.status = 'processing' AND o.subject_id IS NOT NULL
        GROUP BY o.bank_no, o.operation_type, o.subject_id HAVING COUNT(*) > 1""",
    "parent that waits for nobody": """SELECT p.bank_no, p.operation_id AS what, p.status AS stored, NULL AS counted
        FROM async_operations p WHERE p.is_parent = 1 AND (p.status = 'pending') <> EXISTS (SELECT 1
        FROM async_operations c WHERE c.parent_id = p.operation_id AND c.status IN ('pending', 'processing'))""",
    "source of another bank": """SELECT s.bank_no, s.observation_no AS what, u.bank_no AS stored, NULL AS counted
        FROM observation_sources s JOIN memory_units u ON u.unit_no = s.source_no WHERE u.bank_no <> s.bank_no""",
}
TAGGED = [("memory_units", "unit_no", "unit_tags", "unit_no"), ("documents", "document_no", "document_tags", "document_no"),
          ("mental_models", "id", "mental_model_tags", "mental_model_id"),
          ("directives", "id", "directive_tags", "directive_id")]


def recounted(query):
    for name, statement in RECOUNTS.items():
        for row in query(statement):
            yield f"{name}: bank {row['bank_no']}, {row['what']}: stored {row['stored']}, counted {row['counted']}"


def orphans(query):
    for table, column in UNIT_COLUMNS:
        for row in query(f"SELECT t.bank_no, t.{column} AS no, COUNT(*) AS n FROM {table} t LEFT JOIN memory_units u "
                         f"ON u.bank_no = t.bank_no AND u.unit_no = t.{column} WHERE u.unit_no IS NULL GROUP BY 1, 2"):
            yield f"{table}: bank {row['bank_no']}, {row['n']} rows of {column} {row['no']}, which is no unit"
    for table in BANK_TABLES:
        for row in query(f"SELECT t.bank_no, COUNT(*) AS n FROM {table} t LEFT JOIN banks b ON b.bank_no = t.bank_no "
                         f"LEFT JOIN purge_queue p ON p.bank_no = t.bank_no WHERE b.bank_no IS NULL "
                         f"AND p.bank_no IS NULL GROUP BY 1"):
            yield f"{table}: {row['n']} rows of bank {row['bank_no']}, which is gone and not to be purged"


def tags(query):
    """The tags of a row as JSON are those of its side table."""
    for table, key, side, side_key in TAGGED:
        stored = collections.defaultdict(set)
        for row in query(f"SELECT bank_no, {side_key} AS k, tag FROM {side}"):
            stored[row["bank_no"], row["k"]].add(row["tag"])
        rows = {(r["bank_no"], r["k"]): set(json.loads(r["tags"]))
                for r in query(f"SELECT bank_no, {key} AS k, tags FROM {table}")}
        for where in {k for k in stored.keys() | rows.keys() if stored.get(k, set()) != rows.get(k, set())}:
            yield f"{side}: {where} has {sorted(stored.get(where, ()))}, its row says {sorted(rows.get(where, ()))}"


def keywords(query):
    """Postings are exactly the packed terms of the units, and the bank's sums are theirs."""
    stored = collections.defaultdict(dict)
    for row in query("SELECT bank_no, unit_no, term, fact_type, len FROM postings"):
        stored[row["bank_no"], row["unit_no"]][row["term"]] = (row["fact_type"], row["len"])
    sums = collections.defaultdict(lambda: [0, 0])
    for row in query("SELECT bank_no, unit_no, fact_type, terms FROM memory_units"):
        blob, where = row["terms"], (row["bank_no"], row["unit_no"])
        if blob is None:
            yield f"unit {where} has no terms"
            continue
        length, = struct.unpack_from("<I", blob)
        packed = {t: (TYPES[row["fact_type"]], length) for t in struct.unpack_from(f"<{len(blob) // 8}Q", blob, 4)}
        if stored.pop(where, {}) != packed:
            yield f"postings of unit {where} are not its terms"
        sums[row["bank_no"]][0] += 1
        sums[row["bank_no"]][1] += length
    for row in query("SELECT bank_no, units, total_len FROM posting_stats"):
        want = sums.pop(row["bank_no"], [0, 0])
        if [row["units"], row["total_len"]] != want:
            yield f"posting_stats of bank {row['bank_no']}: {row['units']}, {row['total_len']}, counted {want}"
    for bank_no in sums:
        yield f"bank {bank_no} has units and no posting_stats"


def pairs(query):
    named = collections.defaultdict(list)
    for row in query("SELECT bank_no, unit_no, entity_no FROM unit_entities WHERE pos < %s", PAIR_NAMES):
        named[row["bank_no"], row["unit_no"]].append(row["entity_no"])
    counted = collections.Counter()
    for (bank_no, _), nos in named.items():
        nos.sort()
        counted.update((bank_no, a, b) for i, a in enumerate(nos) for b in nos[i + 1:])
    stored = {(r["bank_no"], r["entity_no_1"], r["entity_no_2"]): r["cooccurrence_count"]
              for r in query("SELECT bank_no, entity_no_1, entity_no_2, cooccurrence_count FROM entity_cooccurrences")}
    for pair in {p for p in stored.keys() | counted.keys() if stored.get(p) != counted.get(p)}:
        yield f"entity_cooccurrences: {pair} is {stored.get(pair)}, counted {counted.get(pair)}"


def matches(match, wanted, has):
    """The staleness form of a flat tag filter: untagged memories are outside `any` and `all`."""
    if match == "exact":
        return wanted == has
    return bool(has) and (bool(wanted & has) if match.startswith("any") else wanted <= has)


def is_stale(model, memories):
    since = model["last_memory_seen_at"] or model["read_until"]
    trigger, wanted = json.loads(model["trigger_json"]), set(json.loads(model["tags"]))
    match = trigger.get("tags_match") or ("all_strict" if wanted else "any")
    types = trigger.get("fact_types")
    assert not trigger.get("tag_groups"), "tag groups are not recounted here"
    return any(m["updated_at"] > since and (not types or m["fact_type"] in types)
               and (matches(match, wanted, set(json.loads(m["tags"]))) if wanted or match == "exact" else True)
               for m in memories)


def stale_faults(query, flags):
    """flags: {(bank_id, model id): is_stale as the API says}, read while nothing writes."""
    memories = collections.defaultdict(list)
    for row in query("SELECT bank_no, fact_type, tags, updated_at FROM memory_units"):
        memories[row["bank_no"]].append(row)
    for row in query("SELECT b.bank_id, m.* FROM mental_models m JOIN banks b ON b.bank_no = m.bank_no"):
        want = is_stale(row, memories[row["bank_no"]])
        got = flags.get((row["bank_id"], row["id"]))
        if got is not None and got != want:
            yield f"is_stale of {row['bank_id']}/{row['id']} is {got}, by the rows {want}"


def faults(query):
    """query(statement, *args) -> rows as dictionaries. Every fault, one line each."""
    return [line for check in (recounted, orphans, tags, keywords, pairs) for line in check(query)]


def main():
    db = pymysql.connect(unix_socket=sys.argv[1], user="root", database="hindsight", autocommit=True,
                         charset="utf8mb4", init_command="SET time_zone='+00:00'")

    def query(statement, *args):
        with db.cursor(pymysql.cursors.DictCursor) as cur:
            cur.execute(statement, args)
            return cur.fetchall()
    found = faults(query)
    print("\n".join(found))
    print(f"{len(found)} faults at {datetime.datetime.now():%H:%M:%S}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
