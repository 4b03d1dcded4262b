#include "memories.h"

#include "db/tx.h"
#include "store/clock.h"
#include "store/operation.h"

struct submit {
	struct hs_ctx *c;
	int64_t bank_no;
	json_t *scopes;
	const char *id;
	bool deduplicated;
};

static enum hs_rc submit_tx(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct submit *s = arg;
	struct hs_consolidation_submit sub = {.scopes = s->scopes, .round = 1, .manual = true};

	HS_TRY(hs_clock_lock(db, s->bank_no, err));
	return hs_submit_consolidation(
		db, s->c->pool, s->bank_no, &sub, &s->id, &s->deduplicated, err);
}

enum hs_rc consolidate_post(struct hs_ctx *c, const void *query, const void *body)
{
	const struct consolidate_body *b = body;
	struct submit s = {.c = c, .scopes = b->observation_scopes};
	struct hs_bank bank;
	struct hs_out o;

	(void)query;
	HS_TRY(hs_bank_find(c->db, c->pool, c->bank_id, &bank, &c->err));
	s.bank_no = bank.bank_no;
	HS_TRY(hs_tx_run(c->db, submit_tx, &s, &c->err));
	hs_queue_poke(c->cfg);
	o = hs_reply(c);
	hs_out_open(&o, NULL, '{');
	hs_out_str(&o, "operation_id", s.id);
	hs_out_bool(&o, "deduplicated", s.deduplicated);
	hs_out_close(&o, '}');
	return HS_OK;
}
