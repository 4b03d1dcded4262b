#include "test.h"

#include <string.h>

#include "text/hash.h"

static void digests_are_those_of_the_standards(void **state)
{
	char sha1[HS_SHA1_HEX], sha256[HS_SHA256_HEX];

	(void)state;
	hs_sha1_hex("abc", 3, sha1);
	assert_string_equal(sha1, "a9993e364706816aba3e25717850c26c9cd0d89d");
	hs_sha1_hex(NULL, 0, sha1);
	assert_string_equal(sha1, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
	hs_sha256_hex("abc", 3, sha256);
	assert_string_equal(sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

/* Postings are stored with these values: a change would lose every stored index. */
static void the_term_hash_never_changes(void **state)
{
	(void)state;
	assert_int_equal(hs_hash64("", 0), UINT64_C(0xefd01f60ba992926));
	assert_int_equal(hs_hash64("memori", 6), UINT64_C(0x614938d3b88f48a3));
	assert_int_equal(hs_hash64_seed(7, "memori", 6), UINT64_C(0x90cfad9a7b1c9041));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(digests_are_those_of_the_standards),
		cmocka_unit_test(the_term_hash_never_changes),
	};

	return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
