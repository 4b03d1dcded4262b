#include "store/entity.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "store/bulk.h"
#include "text/words.h"

#define KEY_CHARS 700 /* entities.name_key */

const char *hs_entity_name(struct hs_pool *pool, const char *name)
{
	size_t n = name ? strlen(name) : 0, i = 0, out = 0;
	char *s = hs_pool_alloc(pool, n + 1);
	bool gap = false;

	while (i < n) {
		uint32_t cp;
		size_t len = hs_utf8_next(name + i, n - i, &cp);

		if (len && hs_is_space_cp(cp)) {
			gap = out > 0;
			i += len;
			continue;
		}
		if (gap)
			s[out++] = ' ';
		gap = false;
		len = len ? len : 1;
		memcpy(s + out, name + i, len);
		out += len;
		i += len;
	}
	s[out] = '\0';
	if (!out || hs_utf8_chars(s, out) > HS_ENTITY_NAME_CHARS)
		return NULL;
	return s;
}

const char *hs_entity_key(struct hs_pool *pool, const char *name)
{
	const char *key = hs_lower(pool, name);

	return hs_utf8_chars(key, strlen(key)) > KEY_CHARS ? NULL : key;
}

/* One entity of the uses at hand. */
struct known {
	const char *key, *name, *id;
	int64_t entity_no; /* 0 = to be made */
	int64_t mentions, first_us, last_us;
	size_t order; /* of appearance */
};
struct registry {
	struct known *v; /* sorted by key */
	size_t n;
};

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct known *)a)->key, ((const struct known *)b)->key);
}

static int by_key_order(const void *a, const void *b)
{
	const struct known *x = a, *y = b;
	int c = strcmp(x->key, y->key);

	return c ? c : x->order < y->order ? -1 : x->order > y->order;
}

static int by_entity(const void *a, const void *b)
{
	const struct known *x = *(const struct known *const *)a,
			   *y = *(const struct known *const *)b;

	return x->entity_no < y->entity_no ? -1 : x->entity_no > y->entity_no;
}

static struct known *lookup(const struct registry *reg, const char *key)
{
	struct known probe = {.key = key};

	return reg->n ? bsearch(&probe, reg->v, reg->n, sizeof(*reg->v), by_key) : NULL;
}

static void widen(struct known *k, int64_t mentions, int64_t first_us, int64_t last_us)
{
	k->mentions += mentions;
	if (first_us != HS_TIME_NONE && (k->first_us == HS_TIME_NONE || first_us < k->first_us))
		k->first_us = first_us;
	if (last_us != HS_TIME_NONE && (k->last_us == HS_TIME_NONE || last_us > k->last_us))
		k->last_us = last_us;
}

/* Every name of the uses once, with its mentions counted; the first spelling names a new one. */
static struct registry collect(struct hs_pool *pool, const struct hs_entity_use *uses, size_t n)
{
	struct registry reg = {0};
	size_t total = 0, m = 0;

	for (size_t i = 0; i < n; i++)
		total += uses[i].names.n;
	reg.v = HS_NEW_ARRAY(pool, struct known, total + 1);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < uses[i].names.n; k++) {
			reg.v[reg.n] = (struct known){hs_entity_key(pool, uses[i].names.v[k]),
				uses[i].names.v[k], NULL, 0, 1, uses[i].date_us, uses[i].date_us,
				reg.n};
			reg.n++;
		}
	qsort(reg.v, reg.n, sizeof(*reg.v), by_key_order);
	for (size_t i = 0; i < reg.n; i++) {
		if (m && strcmp(reg.v[m - 1].key, reg.v[i].key) == 0)
			widen(&reg.v[m - 1], reg.v[i].mentions, reg.v[i].first_us,
				reg.v[i].last_us);
		else
			reg.v[m++] = reg.v[i];
	}
	reg.n = m;
	return reg;
}

static enum hs_rc find_known(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	struct registry *reg, struct hs_err *err)
{
	for (size_t i = 0; i < reg->n; i += HS_IN_MAX) {
		struct hs_sql q = hs_sql_new(pool);
		struct hs_strs keys = {0};
		struct hs_rows rows;

		for (size_t k = i; k < reg->n && k < i + HS_IN_MAX; k++)
			hs_strs_add(pool, &keys, reg->v[k].key);
		hs_sql_add(&q, "SELECT entity_no, id, canonical_name, name_key FROM entities "
			       "WHERE bank_no = ? AND name_key IN (");
		hs_sql_bind(&q, hs_b_int(bank_no));
		hs_sql_list_str(&q, &keys);
		hs_sql_add(&q, ")");
		HS_TRY(hs_sql_select(db, &q, &rows, err));
		for (size_t r = 0; r < rows.n; r++) {
			const struct hs_val *v = hs_row(&rows, r);
			struct known *k = lookup(reg, v[3].s);

			if (!k)
				continue;
			k->entity_no = v[0].i;
			k->id = v[1].s;
			k->name = v[2].s;
		}
	}
	return HS_OK;
}

static void take_numbers(void *arg, const struct hs_rows *rows)
{
	const struct registry *reg = arg;

	for (size_t r = 0; r < rows->n; r++) {
		struct known *k = lookup(reg, hs_row(rows, r)[1].s);

		if (k)
			k->entity_no = hs_row(rows, r)[0].i;
	}
}

static const char insert_entity[] =
	"INSERT INTO entities (bank_no, id, canonical_name, name_key, mention_count, first_seen, last_seen, metadata) VALUES ";

static enum hs_rc make_missing(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	struct registry *reg, struct hs_err *err)
{
	struct hs_bulk b = hs_bulk_new(db, pool, insert_entity, "(?, ?, ?, ?, ?, ?, ?, '{}')",
		" RETURNING entity_no, name_key");

	b.on_rows = take_numbers;
	b.arg = reg;
	for (size_t i = 0; i < reg->n; i++) {
		struct known *k = &reg->v[i];

		if (k->entity_no)
			continue;
		k->id = hs_uuid_v7_new(pool);
		HS_TRY(hs_bulk_add(&b,
			HS_BINDS(hs_b_int(bank_no), hs_b_str(k->id), hs_b_str(k->name),
				hs_b_str(k->key), hs_b_int(k->mentions), hs_b_time(k->first_us),
				hs_b_time(k->last_us)),
			err));
		k->mentions = 0; /* counted by the insert */
	}
	HS_TRY(hs_bulk_end(&b, err));
	for (size_t i = 0; i < reg->n; i++)
		if (!reg->v[i].entity_no)
			return hs_fail(err, HS_E_DB, "a new entity got no number");
	return HS_OK;
}

static enum hs_rc count_mentions(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct registry *reg, struct hs_err *err)
{
	struct known **old = HS_NEW_ARRAY(pool, struct known *, reg->n + 1);
	size_t n = 0;
	struct hs_bulk b = hs_bulk_new(db, pool,
		"INSERT INTO entities (bank_no, entity_no, id, canonical_name, name_key, mention_count, first_seen, last_seen) VALUES ",
		"(?, ?, ?, ?, ?, ?, ?, ?)",
		" ON DUPLICATE KEY UPDATE mention_count = mention_count + VALUES(mention_count), "
		"first_seen = LEAST(COALESCE(first_seen, VALUES(first_seen)), COALESCE(VALUES(first_seen), first_seen)), "
		"last_seen = GREATEST(COALESCE(last_seen, VALUES(last_seen)), COALESCE(VALUES(last_seen), last_seen))");

	for (size_t i = 0; i < reg->n; i++)
		if (reg->v[i].mentions)
			old[n++] = &reg->v[i];
	qsort(old, n, sizeof(*old), by_entity);
	for (size_t i = 0; i < n; i++) {
		const struct known *k = old[i];

		HS_TRY(hs_bulk_add(&b,
			HS_BINDS(hs_b_int(bank_no), hs_b_int(k->entity_no), hs_b_str(k->id),
				hs_b_str(k->name), hs_b_str(k->key), hs_b_int(k->mentions),
				hs_b_time(k->first_us), hs_b_time(k->last_us)),
			err));
	}
	return hs_bulk_end(&b, err);
}

struct pair {
	int64_t one, two, count, at_us;
};

static int by_pair(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	if (x->one != y->one)
		return x->one < y->one ? -1 : 1;
	return x->two < y->two ? -1 : x->two > y->two;
}

/* A fact that names hundreds of entities says nothing about pairs: only its first ones count. */
static size_t paired(const struct hs_entity_use *u)
{
	return u->names.n < HS_ENTITY_PAIR_NAMES ? u->names.n : HS_ENTITY_PAIR_NAMES;
}

static enum hs_rc count_pairs(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t stamp_us, const struct hs_entity_use *uses, size_t n, struct hs_err *err)
{
	struct hs_bulk b = hs_bulk_new(db, pool,
		"INSERT INTO entity_cooccurrences (bank_no, entity_no_1, entity_no_2, cooccurrence_count, last_cooccurred) VALUES ",
		"(?, ?, ?, ?, ?)",
		" ON DUPLICATE KEY UPDATE cooccurrence_count = cooccurrence_count + VALUES(cooccurrence_count), "
		"last_cooccurred = GREATEST(COALESCE(last_cooccurred, VALUES(last_cooccurred)), VALUES(last_cooccurred))");
	struct pair *pairs;
	size_t total = 0, m = 0, at = 0;

	for (size_t i = 0; i < n; i++)
		total += paired(&uses[i]) * (paired(&uses[i]) + 1) / 2;
	if (!total)
		return HS_OK;
	pairs = HS_NEW_ARRAY(pool, struct pair, total);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < paired(&uses[i]); k++)
			for (size_t l = k + 1; l < paired(&uses[i]); l++) {
				int64_t one = uses[i].entity_nos[k], two = uses[i].entity_nos[l];

				pairs[at++] = (struct pair){one < two ? one : two,
					one < two ? two : one, 1,
					uses[i].date_us == HS_TIME_NONE ? stamp_us
									: uses[i].date_us};
			}
	total = at;
	qsort(pairs, total, sizeof(*pairs), by_pair);
	for (size_t i = 0; i < total; i++) {
		if (m && by_pair(&pairs[m - 1], &pairs[i]) == 0) {
			pairs[m - 1].count++;
			if (pairs[i].at_us > pairs[m - 1].at_us)
				pairs[m - 1].at_us = pairs[i].at_us;
		} else {
			pairs[m++] = pairs[i];
		}
	}
	for (size_t i = 0; i < m; i++)
		HS_TRY(hs_bulk_add(&b,
			HS_BINDS(hs_b_int(bank_no), hs_b_int(pairs[i].one), hs_b_int(pairs[i].two),
				hs_b_int(pairs[i].count), hs_b_time(pairs[i].at_us)),
			err));
	return hs_bulk_end(&b, err);
}

enum hs_rc hs_entities_use(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t stamp_us, struct hs_entity_use *uses, size_t n, struct hs_err *err)
{
	struct registry reg = collect(pool, uses, n);

	HS_TRY(find_known(db, pool, bank_no, &reg, err));
	HS_TRY(make_missing(db, pool, bank_no, &reg, err));
	HS_TRY(count_mentions(db, pool, bank_no, &reg, err));
	for (size_t i = 0; i < n; i++) {
		uses[i].entity_nos = HS_NEW_ARRAY(pool, int64_t, uses[i].names.n + 1);
		for (size_t k = 0; k < uses[i].names.n; k++)
			uses[i].entity_nos[k] =
				lookup(&reg, hs_entity_key(pool, uses[i].names.v[k]))->entity_no;
	}
	return count_pairs(db, pool, bank_no, stamp_us, uses, n, err);
}

/* ---- taking mentions back ---- */

static void in_list(struct hs_sql *q, const char *head, int64_t bank_no, const int64_t *nos,
	size_t n, const char *tail)
{
	hs_sql_add(q, head);
	hs_sql_bind(q, hs_b_int(bank_no));
	hs_sql_list_int(q, nos, n);
	hs_sql_add(q, tail);
}

static enum hs_rc release_pairs(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *unit_nos, size_t n, struct hs_err *err)
{
	struct hs_sql q = hs_sql_new(pool), drop = hs_sql_new(pool);
	struct hs_bulk b = hs_bulk_new(db, pool,
		"INSERT INTO entity_cooccurrences (bank_no, entity_no_1, entity_no_2, cooccurrence_count) VALUES ",
		"(?, ?, ?, ?)",
		" ON DUPLICATE KEY UPDATE cooccurrence_count = cooccurrence_count + VALUES(cooccurrence_count)");
	struct hs_rows rows;
	int64_t *ones;
	size_t n_ones;

	in_list(&q,
		"SELECT a.entity_no, b.entity_no, COUNT(*) FROM unit_entities a JOIN unit_entities b "
		"ON b.bank_no = a.bank_no AND b.unit_no = a.unit_no AND b.entity_no > a.entity_no "
		"WHERE a.bank_no = ? AND a.unit_no IN (",
		bank_no, unit_nos, n, ") AND a.pos < ? AND b.pos < ? GROUP BY 1, 2 ORDER BY 1, 2");
	hs_sql_bind(&q, hs_b_int(HS_ENTITY_PAIR_NAMES));
	hs_sql_bind(&q, hs_b_int(HS_ENTITY_PAIR_NAMES));
	HS_TRY(hs_sql_select(db, &q, &rows, err));
	if (!rows.n)
		return HS_OK;
	for (size_t r = 0; r < rows.n; r++) {
		const struct hs_val *v = hs_row(&rows, r);

		HS_TRY(hs_bulk_add(&b,
			HS_BINDS(hs_b_int(bank_no), hs_b_int(v[0].i), hs_b_int(v[1].i),
				hs_b_int(-v[2].i)),
			err));
	}
	HS_TRY(hs_bulk_end(&b, err));
	ones = hs_nos_sorted(pool, hs_nos_of_rows(pool, &rows), rows.n, &n_ones);
	in_list(&drop,
		"DELETE FROM entity_cooccurrences WHERE bank_no = ? AND cooccurrence_count <= 0 AND entity_no_1 IN (",
		bank_no, ones, n_ones, ")");
	return hs_sql_exec(db, &drop, NULL, err);
}

/* Mentions fall by the same amount for most entities: one statement an amount. */
static enum hs_rc release_mentions(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_rows *rows, struct hs_err *err)
{
	int64_t *nos = HS_NEW_ARRAY(pool, int64_t, rows->n + 1);

	for (size_t i = 0, j; i < rows->n; i = j) {
		struct hs_sql q = hs_sql_new(pool);
		int64_t count = hs_row(rows, i)[1].i;

		for (j = i; j < rows->n && j - i < HS_IN_MAX && hs_row(rows, j)[1].i == count; j++)
			nos[j - i] = hs_row(rows, j)[0].i;
		hs_sql_add(&q, "UPDATE entities SET mention_count = mention_count - ? WHERE");
		hs_sql_bind(&q, hs_b_int(count));
		in_list(&q, " bank_no = ? AND entity_no IN (", bank_no, nos, j - i, ")");
		HS_TRY(hs_sql_exec(db, &q, NULL, err));
	}
	return HS_OK;
}

static enum hs_rc release_some(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *unit_nos, size_t n, struct hs_err *err)
{
	struct hs_sql q = hs_sql_new(pool);
	struct hs_rows rows;
	int64_t *nos;

	in_list(&q,
		"SELECT entity_no, COUNT(*) AS mentions FROM unit_entities WHERE bank_no = ? AND unit_no IN (",
		bank_no, unit_nos, n, ") GROUP BY entity_no ORDER BY mentions, entity_no");
	HS_TRY(hs_sql_select(db, &q, &rows, err));
	if (!rows.n)
		return HS_OK;
	HS_TRY(release_mentions(db, pool, bank_no, &rows, err));
	HS_TRY(release_pairs(db, pool, bank_no, unit_nos, n, err));
	nos = hs_nos_of_rows(pool, &rows);
	for (size_t i = 0; i < rows.n; i += HS_IN_MAX) {
		q = hs_sql_new(pool);
		in_list(&q,
			"DELETE FROM entities WHERE bank_no = ? AND mention_count <= 0 AND entity_no IN (",
			bank_no, nos + i, rows.n - i < HS_IN_MAX ? rows.n - i : HS_IN_MAX, ")");
		HS_TRY(hs_sql_exec(db, &q, NULL, err));
	}
	return HS_OK;
}

enum hs_rc hs_entities_release(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *unit_nos, size_t n, struct hs_err *err)
{
	for (size_t i = 0; i < n; i += HS_IN_MAX)
		HS_TRY(release_some(db, pool, bank_no, unit_nos + i,
			n - i < HS_IN_MAX ? n - i : HS_IN_MAX, err));
	return HS_OK;
}

/* ---- names of units ---- */

struct named {
	struct hs_rows own, inherited;
};

static enum hs_rc read_names(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *unit_nos, size_t n, struct named *ret, struct hs_err *err)
{
	struct hs_sql q = hs_sql_new(pool);
	int64_t *bare = HS_NEW_ARRAY(pool, int64_t, n + 1), *have;
	size_t n_bare = 0, n_have;

	in_list(&q,
		"SELECT ue.unit_no, e.entity_no, e.id, e.canonical_name FROM unit_entities ue JOIN entities e "
		"ON e.bank_no = ue.bank_no AND e.entity_no = ue.entity_no WHERE ue.bank_no = ? AND ue.unit_no IN (",
		bank_no, unit_nos, n, ") ORDER BY ue.unit_no, ue.pos, e.entity_no");
	HS_TRY(hs_sql_select(db, &q, &ret->own, err));
	have = hs_nos_sorted(pool, hs_nos_of_rows(pool, &ret->own), ret->own.n, &n_have);
	for (size_t i = 0; i < n; i++)
		if (!hs_nos_has(have, n_have, unit_nos[i]))
			bare[n_bare++] = unit_nos[i];
	ret->inherited = (struct hs_rows){0};
	if (!n_bare)
		return HS_OK;

	q = hs_sql_new(pool);
	in_list(&q,
		"SELECT os.observation_no, e.entity_no, e.id, e.canonical_name FROM observation_sources os "
		"JOIN unit_entities ue ON ue.bank_no = os.bank_no AND ue.unit_no = os.source_no "
		"JOIN entities e ON e.bank_no = ue.bank_no AND e.entity_no = ue.entity_no "
		"WHERE os.bank_no = ? AND os.observation_no IN (",
		bank_no, bare, n_bare, ") ORDER BY os.observation_no, os.pos, ue.pos, e.entity_no");
	return hs_sql_select(db, &q, &ret->inherited, err);
}

/* Rows of one unit in order, each entity once. */
static size_t take_names(const struct hs_rows *rows, int64_t unit_no, struct hs_unit_entity *out)
{
	size_t n = 0;

	for (size_t r = 0; r < rows->n; r++) {
		const struct hs_val *v = hs_row(rows, r);
		bool seen = false;

		if (v[0].i != unit_no)
			continue;
		for (size_t k = 0; k < n && !seen; k++)
			seen = out[k].entity_no == v[1].i;
		if (!seen)
			out[n++] = (struct hs_unit_entity){unit_no, v[1].i, v[2].s, v[3].s};
	}
	return n;
}

enum hs_rc hs_entities_of_units(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *unit_nos, size_t n, struct hs_unit_entity **ret, size_t *ret_n,
	struct hs_err *err)
{
	struct named names;
	struct hs_unit_entity *out;
	size_t m = 0;

	*ret = NULL;
	*ret_n = 0;
	if (!n)
		return HS_OK;
	HS_TRY(read_names(db, pool, bank_no, unit_nos, n, &names, err));
	out = HS_NEW_ARRAY(pool, struct hs_unit_entity, names.own.n + names.inherited.n + 1);
	for (size_t i = 0; i < n; i++) {
		size_t got = take_names(&names.own, unit_nos[i], out + m);

		m += got ? got : take_names(&names.inherited, unit_nos[i], out + m);
	}
	*ret = out;
	*ret_n = m;
	return HS_OK;
}
