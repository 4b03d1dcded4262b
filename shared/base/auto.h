/*
 * auto - attributes and macros used everywhere.
 *
 * Floor:   base. No code, only compiler attributes.
 */
#ifndef HS_BASE_AUTO_H
#define HS_BASE_AUTO_H

/* Run fn(&variable) when the variable leaves its scope: HS_AUTO(hs_pool_free) struct hs_pool *p; */
#define HS_AUTO(fn) __attribute__((cleanup(fn)))
/* The result of the function must be used. */
#define HS_MUST __attribute__((warn_unused_result))
#define HS_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define HS_NORETURN __attribute__((noreturn))

/* Hand an error on unchanged. */
#define HS_TRY(expr)                                                                               \
	do {                                                                                       \
		enum hs_rc hs_try_rc_ = (expr);                                                    \
		if (hs_try_rc_ != HS_OK)                                                           \
			return hs_try_rc_;                                                         \
	} while (0)

#define HS_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
