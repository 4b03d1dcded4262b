/*
 * row - column tables: result row -> struct.
 *
 * Floor:   db. A table lists members in the order of the statement's columns.
 */
#ifndef HS_DB_ROW_H
#define HS_DB_ROW_H

#include "db/db.h"

enum hs_ctype {
	HS_C_STR,    /* const char *, NULL for NULL */
	HS_C_INT,    /* int64_t, 0 for NULL */
	HS_C_NUM,    /* double */
	HS_C_BOOL,   /* bool */
	HS_C_TIME,   /* int64_t µs, HS_TIME_NONE for NULL */
	HS_C_STRS,   /* struct hs_strs from a stored JSON array of strings */
	HS_C_BLOB,   /* struct hs_blob */
};
struct hs_blob {
	const void *p;
	size_t n;
};
struct hs_col {
	enum hs_ctype type;
	size_t offset;
};
#define HS_COL_AT(T, m, ctype) (offsetof(T, m) + _Generic(((T *)0)->m, ctype: (size_t)0))
#define HS_COL_STR(T, m) {HS_C_STR, HS_COL_AT(T, m, const char *)}
#define HS_COL_INT(T, m) {HS_C_INT, HS_COL_AT(T, m, int64_t)}
#define HS_COL_NUM(T, m) {HS_C_NUM, HS_COL_AT(T, m, double)}
#define HS_COL_BOOL(T, m) {HS_C_BOOL, HS_COL_AT(T, m, bool)}
#define HS_COL_TIME(T, m) {HS_C_TIME, HS_COL_AT(T, m, int64_t)}
#define HS_COL_STRS(T, m) {HS_C_STRS, HS_COL_AT(T, m, struct hs_strs)}
#define HS_COL_BLOB(T, m) {HS_C_BLOB, HS_COL_AT(T, m, struct hs_blob)}

/* Fill *obj from the row's first n_cols values. Strings are lent from the row. */
void hs_row_read(struct hs_pool *pool, const struct hs_col *cols, size_t n_cols, const struct hs_val *row, void *obj);
/* n objects of `size` bytes in the pool. */
void *hs_rows_read(struct hs_pool *pool, const struct hs_col *cols, size_t n_cols, size_t size, const struct hs_rows *rows);

#endif
