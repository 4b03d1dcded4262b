/*
 * hash - SHA-1, SHA-256 and a 64-bit hash of bytes.
 *
 * Floor:   text; uses base. hash.c alone includes <openssl/evp.h>.
 * Shapes:  hex is lower case plus NUL. hs_hash64 is FNV-1a 64 with a finaliser: it is stored in the
 *          keyword index and used by the hash embedder, so its values never change between releases.
 * Errors:  none; a digest that the library refuses ends the process.
 */
#ifndef HS_TEXT_HASH_H
#define HS_TEXT_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HS_SHA1_BYTES 20
#define HS_SHA1_HEX 41
#define HS_SHA256_BYTES 32
#define HS_SHA256_HEX 65

void hs_sha1(const void *p, size_t n, unsigned char out[HS_SHA1_BYTES]);
void hs_sha1_hex(const void *p, size_t n, char out[HS_SHA1_HEX]);
void hs_sha256(const void *p, size_t n, unsigned char out[HS_SHA256_BYTES]);
void hs_sha256_hex(const void *p, size_t n, char out[HS_SHA256_HEX]);

uint64_t hs_hash64(const void *p, size_t n);
/* Another value for the same bytes: families of features that must not collide. */
uint64_t hs_hash64_seed(uint64_t seed, const void *p, size_t n);

#endif
