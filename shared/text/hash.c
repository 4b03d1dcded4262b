#include "text/hash.h"

#include <stdbool.h>
#include <stdlib.h>

#include <openssl/evp.h>

#include "base/log.h"

#define FNV_OFFSET UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

static void digest(const EVP_MD *md, const void *p, size_t n, unsigned char *out)
{
	if (EVP_Digest(n ? p : "", n, out, NULL, md, NULL) == 1)
		return;

	hs_log(HS_LOG_ERROR, "digest_refused", "name=%s", EVP_MD_get0_name(md));
	abort();
}

static void to_hex(const unsigned char *p, size_t n, char *out)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		out[2 * i] = digits[p[i] >> 4];
		out[2 * i + 1] = digits[p[i] & 15];
	}
	out[2 * n] = '\0';
}

void hs_sha1(const void *p, size_t n, unsigned char out[HS_SHA1_BYTES])
{
	digest(EVP_sha1(), p, n, out);
}

void hs_sha1_hex(const void *p, size_t n, char out[HS_SHA1_HEX])
{
	unsigned char raw[HS_SHA1_BYTES];

	hs_sha1(p, n, raw);
	to_hex(raw, sizeof(raw), out);
}

void hs_sha256(const void *p, size_t n, unsigned char out[HS_SHA256_BYTES])
{
	digest(EVP_sha256(), p, n, out);
}

void hs_sha256_hex(const void *p, size_t n, char out[HS_SHA256_HEX])
{
	unsigned char raw[HS_SHA256_BYTES];

	hs_sha256(p, n, raw);
	to_hex(raw, sizeof(raw), out);
}

/* FNV alone mixes the last bytes badly; this spreads every bit (the finaliser of MurmurHash3). */
static uint64_t spread(uint64_t h)
{
	h ^= h >> 33;
	h *= UINT64_C(0xff51afd7ed558ccd);
	h ^= h >> 33;
	h *= UINT64_C(0xc4ceb9fe1a85ec53);
	h ^= h >> 33;
	return h;
}

uint64_t hs_hash64_seed(uint64_t seed, const void *p, size_t n)
{
	const unsigned char *b = p;
	uint64_t h = FNV_OFFSET ^ (seed * FNV_PRIME);

	for (size_t i = 0; i < n; i++)
		h = (h ^ b[i]) * FNV_PRIME;
	return spread(h);
}

uint64_t hs_hash64(const void *p, size_t n)
{
	return hs_hash64_seed(0, p, n);
}
