/*
 * limits - every named cap, with its reason. Nothing a client or a service can grow is without one.
 *
 * Units:   bytes unless the name says otherwise.
 */
#ifndef HS_BASE_LIMITS_H
#define HS_BASE_LIMITS_H

#define HS_BODY_MAX ((size_t)20 * 1024 * 1024)        /* request body; contract banks 1.4 */
#define HS_PACKET_MARGIN ((size_t)1024 * 1024)        /* kept free below max_allowed_packet */
#define HS_REPLY_MAX ((size_t)256 * 1024 * 1024)      /* one answer; a page of 1,000 large rows */
#define HS_URI_MAX ((size_t)64 * 1024)                /* raw request URI */
#define HS_QUERY_PARAMS_MAX 2000                      /* parameters in one query string */
#define HS_JSON_DEPTH 128                             /* nesting; contract banks 1.4 */
#define HS_JSON_VALUES 1000000                        /* values in one text from outside; an object counts four */
#define HS_TAG_CHARS 255                              /* code points of a tag */
#define HS_TAGS_PER_ITEM 1000
#define HS_STRS_PER_LIST 2000                         /* strings in a list without a limit of its own */
#define HS_DOCUMENT_ID_BYTES 512
#define HS_BANK_ID_BYTES 192
#define HS_MODEL_ID_CHARS 64
#define HS_TEXT_CHARS 4194303                         /* a MEDIUMTEXT at four bytes a character */
#define HS_ITEMS_PER_REQUEST 10000
#define HS_FIELD_ERRORS 100                           /* entries in one 422 list */
#define HS_FIELD_INPUT_BYTES 1024                     /* longer inputs are cut in a 422 entry */
#define HS_PAGE_MAX 1000                              /* page size; larger limits are served as this */
#define HS_IGNORED_HEADER_BYTES 2048                  /* X-Ignored-Params; longer ones break proxies */
#define HS_GROUP_DEPTH 32                             /* and/or/not around a tag group's leaf */
#define HS_GROUP_NODES 256
#define HS_GROUP_TAGS 1000
#define HS_EXPAND_IDS 1000                            /* ids in one tool call of a model */
#define HS_TOOL_CALLS 100                             /* tool calls run of one reply of a model */
#define HS_DELTA_OPS 1000                             /* operations in one reply of a delta call */
#define HS_CITATIONS 10000                            /* ids looked at in one list of citations */
#define HS_LLM_REPLY_MAX ((size_t)16 * 1024 * 1024)   /* body of one model reply */
#define HS_PROMPT_MAX ((size_t)32 * 1024 * 1024)      /* one request to a model */
#define HS_EMBED_DIM_MAX 4096
#define HS_INSERT_FLUSH ((size_t)1024 * 1024)         /* multi-row inserts are sent at this size */
#define HS_STMT_CACHE 128                             /* prepared statements per connection */
#define HS_TX_TRIES 8                                 /* runs of one transaction on deadlock */
#define HS_ENTITY_NAME_CHARS 512
#define HS_ENTITIES_PER_ITEM 1000                     /* supplied names of one item */
#define HS_ENTITY_PAIR_NAMES 64                       /* names of a fact that count as seen together */
#define HS_ERROR_MESSAGE_CHARS 5000                   /* error_message of an operation */
#define HS_CRON_YEARS 50                              /* how far a cron expression is searched */

#endif
