#include "db/row.h"

#include <jansson.h>
#include <string.h>

#include "base/clock.h"

/* A stored list of strings; anything else in it is left out (we wrote the column ourselves). */
static struct hs_strs read_strs(struct hs_pool *pool, const struct hs_val *v)
{
	struct hs_strs list = {0};
	json_t *json, *item;
	size_t i;

	if (!v->s || v->n <= 2)
		return list;
	json = json_loadb(v->s, v->n, 0, NULL);
	json_array_foreach(json, i, item) {
		if (json_is_string(item))
			hs_strs_add(pool, &list,
				hs_pool_strndup(
					pool, json_string_value(item), json_string_length(item)));
	}
	json_decref(json);
	return list;
}

static void read_one(struct hs_pool *pool, enum hs_ctype type, const struct hs_val *v, void *place)
{
	switch (type) {
	case HS_C_STR:
		*(const char **)place = v->s;
		return;
	case HS_C_INT:
		*(int64_t *)place = v->null ? 0 : v->i;
		return;
	case HS_C_NUM:
		*(double *)place = v->null ? 0 : v->d;
		return;
	case HS_C_BOOL:
		*(bool *)place = !v->null && v->i != 0;
		return;
	case HS_C_TIME:
		*(int64_t *)place = v->null ? HS_TIME_NONE : v->i;
		return;
	case HS_C_STRS:
		*(struct hs_strs *)place = read_strs(pool, v);
		return;
	case HS_C_BLOB:
		*(struct hs_blob *)place = (struct hs_blob){v->s, v->n};
		return;
	}
}

void hs_row_read(struct hs_pool *pool, const struct hs_col *cols, size_t n_cols,
	const struct hs_val *row, void *obj)
{
	for (size_t i = 0; i < n_cols; i++)
		read_one(pool, cols[i].type, &row[i], (char *)obj + cols[i].offset);
}

void *hs_rows_read(struct hs_pool *pool, const struct hs_col *cols, size_t n_cols, size_t size,
	const struct hs_rows *rows)
{
	char *objs = hs_pool_calloc(pool, rows->n, size);

	for (size_t i = 0; i < rows->n; i++)
		hs_row_read(pool, cols, n_cols, hs_row(rows, i), objs + i * size);
	return objs;
}
