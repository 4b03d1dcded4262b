/* Says what works, what does not, and what to do about it. */
#include "admin.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "json/json.h"
#include "llm/embed.h"
#include "llm/llm.h"
#include "store/automatic.h"
#include "store/health.h"
#include "store/operation.h"
#include "store/schema.h"

#define CALL_US (20 * HS_SECOND_US)
#define WAITS_LONG_US (60 * HS_SECOND_US)
#define TICK_LATE_S 300 /* timer, its random delay, a run */
#define REQUEST_PROGRAMS 5 /* banks, memories, mental-models, prompts, operations */
#define LONG_THREADS (64 + 32) /* reflect and mcp, unless fastcgi_threads is set */
#define WORKER_EXTRA 3 /* main, leases, upkeep */
#define SPARE_CONNECTIONS 10
#define PACKET_WANTED (HS_BODY_MAX + HS_PACKET_MARGIN)

enum verdict { GOOD, NOTE, BAD };

struct check {
	struct admin *a;
	struct hs_db *db;
	struct hs_embedder *embedder;
	bool failed, database;
};

/* One line a finding; what to do stands under it. */
static void say(
	struct check *c, enum verdict v, const char *what, const char *text, const char *remedy)
{
	static const char *const marks[] = {"ok", "note", "FAIL"};

	printf("%-4s  %-10s %s\n", marks[v], what, text);
	if (remedy)
		printf("                 -> %s\n", remedy);
	c->failed = c->failed || v == BAD;
}

#define TEXT(c, ...) hs_pool_printf((c)->a->pool, __VA_ARGS__)

static void say_error(
	struct check *c, const char *what, const struct hs_err *err, const char *remedy)
{
	say(c, BAD, what, err->msg[0] ? err->msg : hs_rc_text(err->rc), remedy);
}

/* ---- folders ---- */

static void check_folder(struct check *c, enum hs_setting_id id)
{
	const char *dir = hs_cfg_str(c->a->cfg, id), *name = hs_settings[id].name;

	if (hs_str_empty(dir))
		return;
	if (access(dir, W_OK | X_OK) == 0)
		say(c, GOOD, name, dir, NULL);
	else
		say(c, NOTE, name, TEXT(c, "%s: %s", dir, strerror(errno)),
			"the services make it at their start; otherwise make it, owned by their user");
}

static void check_folders(struct check *c)
{
	check_folder(c, HS_S_run_dir);
	check_folder(c, HS_S_cache_dir);
}

/* ---- database ---- */

static const char *connect_remedy(const struct hs_err *err)
{
	if (err->rc == HS_E_DB_SCHEMA)
		return "run hindsight-admin migrate";
	if (err->foreign == 1044 || err->foreign == 1045 || err->foreign == 1698)
		return "set database_user and database_password, and grant that user the database";
	return "start MariaDB, or set database_socket or database_host and database_port";
}

static void check_packet(struct check *c, const struct hs_server_facts *s)
{
	const char *text = TEXT(c, "max_allowed_packet is %" PRId64 " MiB", s->max_packet >> 20);

	if (s->max_packet >= (int64_t)PACKET_WANTED)
		say(c, GOOD, "packet", text, NULL);
	else
		say(c, NOTE, "packet",
			TEXT(c, "%s: requests over %" PRId64 " MiB are refused", text,
				(s->max_packet - (int64_t)HS_PACKET_MARGIN) >> 20),
			"set max_allowed_packet = 64M in MariaDB's configuration");
}

static void check_connections(struct check *c, const struct hs_server_facts *s)
{
	const struct hs_config *cfg = c->a->cfg;
	int64_t threads = hs_cfg_int(cfg, HS_S_fastcgi_threads);
	int64_t longs = hs_cfg_explicit(cfg, HS_S_fastcgi_threads) ? 2 * threads : LONG_THREADS;
	int64_t need = REQUEST_PROGRAMS * threads + longs +
		       hs_cfg_int(cfg, HS_S_worker_max_slots) + WORKER_EXTRA + SPARE_CONNECTIONS;
	const char *text = TEXT(c,
		"%" PRId64 " allowed, %" PRId64 " open, up to %" PRId64 " needed by one host",
		s->max_connections, s->connections, need);

	if (s->max_connections >= need)
		say(c, GOOD, "sessions", text, NULL);
	else
		say(c, NOTE, "sessions", text,
			TEXT(c,
				"set max_connections = %" PRId64
				" in MariaDB's configuration, or lower fastcgi_threads",
				need + need / 4));
}

static void check_durable(struct check *c, const struct hs_server_facts *s)
{
	if (s->durable)
		say(c, GOOD, "durability", "what was acknowledged survives a power cut", NULL);
	else
		say(c, NOTE, "durability", "a power cut may lose the last second",
			"set innodb_flush_log_at_trx_commit = 1 in MariaDB's configuration");
}

static void check_database(struct check *c)
{
	struct hs_server_facts s;
	struct hs_err err;

	hs_err_clear(&err);
	if (hs_db_ping(c->db, &err) != HS_OK ||
		hs_server_facts(c->db, c->a->pool, &s, &err) != HS_OK) {
		say_error(c, "database", &err, connect_remedy(&err));
		return;
	}
	say(c, GOOD, "database",
		TEXT(c, "MariaDB %s, database %s", s.version,
			hs_cfg_str(c->a->cfg, HS_S_database_name)),
		NULL);
	check_packet(c, &s);
	check_connections(c, &s);
	check_durable(c, &s);
	if (hs_schema_check(c->db, NULL, &err) != HS_OK) {
		say_error(c, "schema", &err, connect_remedy(&err));
		return;
	}
	say(c, GOOD, "schema", TEXT(c, "version %d", HS_SCHEMA_VERSION), NULL);
	c->database = true;
}

/* ---- models ---- */

static enum hs_rc try_model(struct check *c, struct hs_llm_reply *reply, struct hs_err *err)
{
	struct hs_llm_call call = {
		.operation = "reflect",
		.scope = "check",
		.messages =
			hs_json_keep(c->a->pool, json_pack("[{s:s, s:s}]", "role", "user",
							 "content", "Answer with the word ready.")),
		.temperature = -1,
		.max_tokens = 64,
		.max_retries = 0,
		.deadline_us = hs_mono_us() + CALL_US,
	};
	struct hs_llm *llm;

	HS_TRY(hs_llm_new(c->a->pool, c->a->cfg, &llm, err));
	return hs_llm_chat(llm, c->a->pool, &call, reply, err);
}

static const char *model_remedy(enum hs_rc rc)
{
	switch (rc) {
	case HS_E_LLM_AUTH:
		return "check llm_api_key";
	case HS_E_LLM_REFUSED:
		return "check llm_model and llm_base_url";
	case HS_E_LLM_QUOTA:
		return "the account's limit is reached: raise it or wait";
	default:
		return "check llm_base_url, llm_model and llm_api_key, and that this host reaches the service";
	}
}

static void check_provider(struct check *c)
{
	const char *provider = hs_cfg_llm_provider(c->a->cfg, "reflect");
	struct hs_llm_reply reply;
	struct hs_err err;
	enum hs_rc rc;

	if (hs_str_eq(provider, "extractive")) {
		say(c, NOTE, "model", "extractive: built in, quotes stored text, calls no model",
			"set llm_api_key, or llm_base_url and llm_model, to use a model");
		return;
	}
	if (hs_str_eq(provider, "none")) {
		say(c, NOTE, "model",
			"none: content is stored in chunks, reflect and refresh answer 400", NULL);
		return;
	}
	hs_err_clear(&err);
	rc = try_model(c, &reply, &err);
	/* a model that used up its few tokens on thinking has answered */
	if (rc == HS_OK || rc == HS_E_LLM_LENGTH)
		say(c, GOOD, "model",
			rc == HS_OK ? TEXT(c, "%s, %s answers in %" PRId64 " ms", provider,
					      reply.model, reply.duration_ms)
				    : TEXT(c, "%s answers", provider),
			NULL);
	else
		say_error(c, "model", &err, model_remedy(rc));
}

static void check_embedder(struct check *c)
{
	struct hs_strs texts = {0};
	struct hs_vec vec;
	struct hs_err err;

	hs_err_clear(&err);
	if (hs_embedder_new(c->a->pool, c->a->cfg, &c->embedder, &err) != HS_OK) {
		say_error(c, "embedder", &err, "check the embeddings_ settings");
		return;
	}
	if (hs_embedder_none(c->embedder)) {
		say(c, NOTE, "embedder", "none: search is by words only", NULL);
		return;
	}
	hs_strs_add(c->a->pool, &texts, "ready");
	if (hs_embed(c->embedder, c->a->pool, &texts, true, hs_mono_us() + CALL_US, &vec, &err) !=
		HS_OK) {
		say_error(c, "embedder", &err,
			"check embeddings_openai_base_url, _model and _api_key, and that this host reaches the service");
		return;
	}
	say(c, GOOD, "embedder",
		TEXT(c, "%s, %zu dimensions", hs_embedder_tag(c->embedder), vec.dim), NULL);
}

static void check_vectors(struct check *c)
{
	int64_t own, foreign;
	struct hs_err err;

	if (!c->database || !c->embedder || hs_embedder_none(c->embedder))
		return;
	hs_err_clear(&err);
	if (hs_vector_counts(
		    c->db, c->a->pool, hs_embedder_tag(c->embedder), &own, &foreign, &err) != HS_OK)
		say_error(c, "vectors", &err, NULL);
	else if (foreign > 0)
		say(c, NOTE, "vectors",
			TEXT(c,
				"%" PRId64 " of this embedder, %" PRId64
				" of others, which are left out of vector search",
				own, foreign),
			"set the former embedder again, or store that content once more");
	else
		say(c, GOOD, "vectors", TEXT(c, "%" PRId64, own), NULL);
}

/* ---- queue ---- */

static void check_queue(struct check *c)
{
	struct hs_queue_counts q;
	struct hs_err err;
	const char *text;

	if (!c->database)
		return;
	hs_err_clear(&err);
	if (hs_queue_count(c->db, c->a->pool, &q, &err) != HS_OK) {
		say_error(c, "queue", &err, NULL);
		return;
	}
	text = TEXT(c,
		"%" PRId64 " waiting (%" PRId64 " of them later), %" PRId64 " running, %" PRId64
		" failed",
		q.pending, q.parked, q.processing, q.failed);
	if (q.oldest_pending_us != HS_TIME_NONE && q.processing == 0 &&
		hs_now_us() - q.oldest_pending_us > WAITS_LONG_US)
		say(c, BAD, "queue",
			TEXT(c, "%s; the oldest has waited for %" PRId64 " s and nothing runs",
				text, (hs_now_us() - q.oldest_pending_us) / HS_SECOND_US),
			"start hindsight-worker");
	else if (q.expired > 0)
		say(c, NOTE, "queue",
			TEXT(c, "%s; %" PRId64 " belong to a worker that is gone", text, q.expired),
			"a running hindsight-worker takes them over");
	else
		say(c, GOOD, "queue", text, NULL);
}

/* ---- what refreshes by itself ---- */

static void say_schedules(struct check *c, const struct hs_auto_counts *n)
{
	int64_t every_s = hs_cfg_int(c->a->cfg, HS_S_mental_model_refresh_tick_seconds);
	int64_t late_us = (every_s + TICK_LATE_S) * HS_SECOND_US;
	const char *text = TEXT(c, "%" PRId64 " mental models have one", n->scheduled);

	if (n->scheduled > 0 && every_s == 0)
		say(c, NOTE, "schedules", TEXT(c, "%s, but nobody is to look at them", text),
			"set mental_model_refresh_tick_seconds");
	else if (n->scheduled > 0 &&
		(n->tick_us == HS_TIME_NONE || hs_now_us() - n->tick_us > late_us))
		say(c, BAD, "schedules", TEXT(c, "%s, but nothing looks at them", text),
			"enable hindsight-refresh-tick.timer, or run hindsight-refresh-tick every "
			"minute");
	else
		say(c, GOOD, "schedules", text, NULL);
}

static void check_triggers(struct check *c)
{
	struct hs_auto_counts n;
	struct hs_err err;

	if (!c->database)
		return;
	hs_err_clear(&err);
	if (hs_auto_count(c->db, c->a->pool, &n, &err) != HS_OK) {
		say_error(c, "schedules", &err, NULL);
		return;
	}
	say_schedules(c, &n);
	if (n.paused > 0)
		say(c, NOTE, "paused",
			TEXT(c, "%" PRId64 " mental models wait after a failed refresh", n.paused),
			"refresh them by hand: a success starts their triggers again");
}

static void check_banks(struct check *c)
{
	int64_t banks, purging;
	struct hs_err err;

	if (!c->database)
		return;
	hs_err_clear(&err);
	if (hs_bank_counts(c->db, c->a->pool, &banks, &purging, &err) != HS_OK)
		say_error(c, "banks", &err, NULL);
	else
		say(c, GOOD, "banks",
			purging ? TEXT(c,
					  "%" PRId64 ", and %" PRId64
					  " deleted ones whose rows are being removed",
					  banks, purging)
				: TEXT(c, "%" PRId64, banks),
			NULL);
}

int admin_check(struct admin *a)
{
	static void (*const steps[])(struct check * c) = {check_folders, check_database,
		check_provider, check_embedder, check_vectors, check_banks, check_queue,
		check_triggers};
	struct check c = {.a = a, .db = hs_db_new(a->cfg)};

	say(&c, GOOD, "settings", "the configuration can be read", NULL);
	for (size_t i = 0; i < HS_COUNT(steps); i++)
		steps[i](&c);
	hs_db_free(&c.db);
	return c.failed ? 1 : 0;
}
