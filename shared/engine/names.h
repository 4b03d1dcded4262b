/*
 * names - capitalised names in a sentence, without a model.
 *
 * Floor:   engine; pure.
 * Rules:   a name is a run of capitalised words ("Ana Ruiz", "Bank of Lisbon", "K-200A"); small words
 *          (of, de, van …) may stand between. At a sentence's start a single word counts unless it is a
 *          usual starter (stop words, adverbs, verbs). Months, weekdays, "I" and possessive 's are no
 *          part of names. Sentences written in capitals throughout give none. Scripts without capitals
 *          give none.
 * Limits:  NAMES_PER_SENTENCE 12.
 */
#ifndef HS_ENGINE_NAMES_H
#define HS_ENGINE_NAMES_H

#include "base/pool.h"
#include "base/str.h"

/* Adds the names of the sentence to the list, each once, in order. */
void hs_names_add(struct hs_pool *pool, const char *sentence, struct hs_strs *list);

/* Folded words that often begin a sentence and carry little: "well", "thanks", "really". */
bool hs_word_is_starter(const char *word);

#endif
