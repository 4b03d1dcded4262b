#include "base/id.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

static void random_bytes(unsigned char *out, size_t n)
{
	while (n > 0) {
		ssize_t got = getrandom(out, n, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			abort(); /* no kernel randomness: ids could repeat, nothing may go on */
		out += got;
		n -= (size_t)got;
	}
}

static void print_uuid(const unsigned char b[16], char out[HS_UUID_TEXT])
{
	static const char hex[] = "0123456789abcdef";
	char *p = out;

	for (int i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*p++ = '-';
		*p++ = hex[b[i] >> 4];
		*p++ = hex[b[i] & 15];
	}
	*p = '\0';
}

void hs_uuid_v4(char out[HS_UUID_TEXT])
{
	unsigned char b[16];

	random_bytes(b, sizeof(b));
	b[6] = (unsigned char)((b[6] & 0x0F) | 0x40);
	b[8] = (unsigned char)((b[8] & 0x3F) | 0x80);
	print_uuid(b, out);
}

/* Milliseconds and a 12-bit counter inside them: rises strictly within the process. */
static uint64_t next_v7_stamp(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static uint64_t last;
	struct timespec ts;
	uint64_t now;

	clock_gettime(CLOCK_REALTIME, &ts);
	now = ((uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000) << 12;
	pthread_mutex_lock(&lock);
	last = now > last ? now : last + 1;
	now = last;
	pthread_mutex_unlock(&lock);
	return now;
}

void hs_uuid_v7(char out[HS_UUID_TEXT])
{
	unsigned char b[16];
	uint64_t stamp = next_v7_stamp(), ms = stamp >> 12, count = stamp & 0xFFF;

	random_bytes(b, sizeof(b));
	for (int i = 0; i < 6; i++)
		b[i] = (unsigned char)(ms >> (40 - 8 * i));
	b[6] = (unsigned char)(0x70 | count >> 8);
	b[7] = (unsigned char)count;
	b[8] = (unsigned char)((b[8] & 0x3F) | 0x80);
	print_uuid(b, out);
}

const char *hs_uuid_v7_new(struct hs_pool *pool)
{
	char *s = hs_pool_alloc(pool, HS_UUID_TEXT);

	hs_uuid_v7(s);
	return s;
}

const char *hs_uuid_v4_new(struct hs_pool *pool)
{
	char *s = hs_pool_alloc(pool, HS_UUID_TEXT);

	hs_uuid_v4(s);
	return s;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool hs_uuid_parse(const char *s, char out[HS_UUID_TEXT])
{
	unsigned char b[16] = {0};
	size_t n, digits = 0;

	if (!s)
		return false;
	if (strncmp(s, "urn:uuid:", 9) == 0)
		s += 9;
	n = strlen(s);
	if (n >= 2 && s[0] == '{' && s[n - 1] == '}') {
		s++;
		n -= 2;
	}
	for (size_t i = 0; i < n; i++) {
		int v = hex_value(s[i]);

		if (s[i] == '-')
			continue;
		if (v < 0 || digits == 32)
			return false;
		b[digits / 2] = (unsigned char)(b[digits / 2] << 4 | v);
		digits++;
	}
	if (digits != 32)
		return false;
	print_uuid(b, out);
	return true;
}

void hs_random_hex(char *out, size_t n_bytes)
{
	static const char hex[] = "0123456789abcdef";

	for (size_t i = 0; i < n_bytes; i++) {
		unsigned char b;

		random_bytes(&b, 1);
		out[2 * i] = hex[b >> 4];
		out[2 * i + 1] = hex[b & 15];
	}
	out[2 * n_bytes] = '\0';
}

double hs_random_unit(void)
{
	uint64_t v;

	random_bytes((unsigned char *)&v, sizeof(v));
	return (double)(v >> 11) * 0x1.0p-53;
}
