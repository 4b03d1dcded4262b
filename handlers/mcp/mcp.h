/*
 * mcp - the program hindsight-mcp: tools for agents over JSON-RPC at /mcp and /mcp/{bank_id}.
 *
 * Rules:   contract mcp A; DESIGN 13. Stateless, one reply a request, always JSON.
 * Files:   rpc.c takes the request (address, key, frames, methods); tools.c is the table of tools and
 *          runs a call by it; schema.c prints a field table as a tool's input schema and turns
 *          texts into lists; calls_*.c join the tools with engine and store.
 * Owns:    everything lives in the request's pool.
 */
#ifndef HS_HANDLERS_MCP_H
#define HS_HANDLERS_MCP_H

#include "engine/run.h"
#include "json/check.h"
#include "json/out.h"
#include "web/program.h"

/* What the threads share: read-only after the start. */
struct mcp_data {
	struct hs_llm *llm;
	struct hs_embedder *embedder;
	const char *default_bank; /* of requests that name none */
};

/* Which tools a bank lets through. */
struct mcp_filter {
	bool all;
	struct hs_strs names;
};
/* One request. */
struct mcp {
	struct hs_ctx *c;
	bool single;                /* the address names the bank: no bank_id arguments */
	const char *bank_id;        /* of the address, the header or the server */
	struct mcp_filter *session; /* of bank_id, once it was asked */
};
/* One call of a tool. The result goes into *o: an object, or plain text for style MCP_TEXT. */
struct mcp_call {
	struct hs_ctx *c;
	const char *bank_id; /* the effective one */
	struct hs_run *run;
	json_t *sent; /* the arguments, texts turned into lists and objects */
	struct hs_out *o;
	struct hs_err *err;
};
typedef enum hs_rc mcp_fn(struct mcp_call *k, const void *args);

/* How a failure is told (contract A8). */
enum mcp_style {
	MCP_OBJECT, /* {"error": …} as an ordinary result */
	MCP_STATUS, /* {"status":"error","message": …} */
	MCP_TEXT,   /* "Error: …", isError: the legacy tools */
};
/* What a key must allow (DESIGN 9); readers are announced as such. */
enum mcp_level { MCP_READ, MCP_WRITE };

/* flags of a tool */
#define MCP_MULTI 0x01u /* only where the address names no bank */
#define MCP_BANK 0x02u  /* takes bank_id where the address names none */
#define MCP_DESTROYS 0x04u
#define MCP_LONG 0x08u     /* may call a model */
#define MCP_PLAIN 0x10u    /* structured content is the object in both modes */
#define MCP_ONE_LINE 0x20u /* its text is not indented */
#define MCP_ADVISED 0x40u  /* mcp_instructions is added to the description */

struct mcp_tool {
	const char *name, *description;
	const struct hs_shape *args;
	mcp_fn *fn;
	enum mcp_style style;
	enum mcp_level level;
	unsigned flags;
	const char *empty_key, *empty; /* member beside "error", its JSON text; NULL = none */
};
extern const struct mcp_tool mcp_tools[];
extern const size_t n_mcp_tools;

/* rpc.c: struct hs_program.serve */
bool mcp_serve(struct hs_ctx *c);

/* tools.c: value of "tools", and of "result" of one call. Nothing is written on failure, which is
 * one of the server's, not of the tool. */
HS_MUST enum hs_rc mcp_tools_list(struct mcp *m, struct hs_out *o);
HS_MUST enum hs_rc mcp_tool_call(
	struct mcp *m, const char *name, json_t *arguments, struct hs_out *o);
/* Failures that are told as HTTP 503: the database is away. */
bool mcp_unavailable(enum hs_rc rc);

/* schema.c */
void mcp_schema_put(
	struct hs_out *o, const char *key, const struct hs_shape *shape, bool with_bank);
/* Text that holds a JSON list or object, where the field wants one, becomes that. */
json_t *mcp_coerce(struct hs_pool *pool, const struct hs_shape *shape, json_t *arguments);
/* Custom readers (json_t *): list of objects, part of a trigger. */
hs_custom_fn mcp_objects_read, mcp_trigger_read;
extern const struct hs_field mcp_bank_field;

/* calls_memory.c */
extern const struct hs_shape mcp_retain_args, mcp_recall_args, mcp_reflect_args, mcp_memory_args;
mcp_fn mcp_retain, mcp_recall, mcp_reflect, mcp_get_memory;
/* calls_bank.c */
extern const struct hs_shape mcp_list_banks_args, mcp_create_bank_args, mcp_no_args;
mcp_fn mcp_list_banks, mcp_create_bank, mcp_get_bank;
/* calls_model.c */
extern const struct hs_shape mcp_list_models_args, mcp_get_model_args, mcp_create_model_args,
	mcp_update_model_args, mcp_model_args;
mcp_fn mcp_list_models, mcp_get_model, mcp_create_model, mcp_update_model, mcp_delete_model,
	mcp_refresh_model;
/* calls_operation.c */
extern const struct hs_shape mcp_list_operations_args, mcp_operation_args;
mcp_fn mcp_list_operations, mcp_get_operation, mcp_cancel_operation;
/* calls_legacy.c */
extern const struct hs_shape mcp_put_args, mcp_search_args;
mcp_fn mcp_put, mcp_search;

/* For calls: copy a member that was sent with a value. */
void mcp_keep(json_t *to, json_t *from, const char *key);
/* Check a body made for HTTP's table; its faults are failures of the tool. */
HS_MUST enum hs_rc mcp_body(
	struct mcp_call *k, const struct hs_shape *shape, json_t *body, void **ret);
/* An engine time argument: "" and NULL are none; else ISO 8601 with a real year. */
HS_MUST enum hs_rc mcp_time(struct mcp_call *k, const char *text, int64_t *ret_us);

#endif
