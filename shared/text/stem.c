#include "text/stem.h"

#include <libstemmer.h>

#include "base/str.h"

/* libstemmer's own type stays inside this file: the handle is its pointer. */
static struct sb_stemmer *inner(struct hs_stemmer *s)
{
	return (struct sb_stemmer *)s;
}

struct hs_stemmer *hs_stemmer_new(const char *lang)
{
	return (struct hs_stemmer *)sb_stemmer_new(hs_str_empty(lang) ? "english" : lang, "UTF_8");
}

void hs_stemmer_free(struct hs_stemmer **sp)
{
	if (*sp)
		sb_stemmer_delete(inner(*sp));
	*sp = NULL;
}

const char *hs_stem(struct hs_stemmer *s, const char *word, size_t n, size_t *ret_n)
{
	const sb_symbol *out;

	*ret_n = n;
	if (!s || n == 0 || n > HS_STEM_BYTES)
		return word;

	out = sb_stemmer_stem(inner(s), (const sb_symbol *)word, (int)n);
	if (!out)
		return word;

	*ret_n = (size_t)sb_stemmer_length(inner(s));
	return (const char *)out;
}

bool hs_stem_known(const char *lang)
{
	struct hs_stemmer *s = hs_stemmer_new(lang);
	bool known = s != NULL;

	hs_stemmer_free(&s);
	return known;
}
