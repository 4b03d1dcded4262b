/*
 * test - what every unit test includes: cmocka and its prerequisites.
 */
#ifndef HS_TEST_H
#define HS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
