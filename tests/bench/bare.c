/*
 * bare - what the model endpoint is measured against: libfcgi, one prepared primary-key SELECT, the same
 * JSON body. Nothing else: no routes, no checks, no log.
 *
 * Use: bare SOCKET DB_SOCKET BANK_NO MODEL_ID THREADS
 */
#include <errno.h>
#include <fcgiapp.h>
#include <jansson.h>
#include <mysql.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define COLUMNS 11
#define CELL 16384

static const char *const names[COLUMNS] = {"id", "bank_id", "name", "source_query", "content", "tags", "max_tokens",
	"trigger", "last_refreshed_at", "last_memory_seen_at", "created_at"};
static const char sql[] = "SELECT m.id, b.bank_id, m.name, m.source_query, m.content, m.tags, m.max_tokens, "
			  "m.trigger_json, m.last_refreshed_at, m.last_memory_seen_at, m.created_at "
			  "FROM mental_models m JOIN banks b ON b.bank_no = m.bank_no WHERE m.bank_no = ? AND m.id = ?";

static int listener;
static const char *db_socket, *model_id;
static long long bank_no;

static void die(const char *what)
{
	fprintf(stderr, "bare: %s: %s\n", what, strerror(errno));
	exit(1);
}

static MYSQL_STMT *prepare(MYSQL *db, MYSQL_BIND *in, MYSQL_BIND *out, char (*cells)[CELL], unsigned long *lengths,
	my_bool *nulls)
{
	static unsigned long id_length;
	MYSQL_STMT *st;

	if (!mysql_real_connect(db, NULL, "root", NULL, "hindsight", 0, db_socket, 0))
		die(mysql_error(db));
	mysql_set_character_set(db, "utf8mb4");
	st = mysql_stmt_init(db);
	if (!st || mysql_stmt_prepare(st, sql, sizeof(sql) - 1))
		die(mysql_error(db));
	id_length = strlen(model_id);
	in[0] = (MYSQL_BIND){.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = &bank_no};
	in[1] = (MYSQL_BIND){.buffer_type = MYSQL_TYPE_STRING, .buffer = (char *)model_id, .length = &id_length,
		.buffer_length = id_length};
	for (int i = 0; i < COLUMNS; i++)
		out[i] = (MYSQL_BIND){.buffer_type = MYSQL_TYPE_STRING, .buffer = cells[i], .buffer_length = CELL - 1,
			.length = &lengths[i], .is_null = &nulls[i]};
	if (mysql_stmt_bind_param(st, in) || mysql_stmt_bind_result(st, out))
		die(mysql_stmt_error(st));
	return st;
}

static char *body(MYSQL_STMT *st, char (*cells)[CELL], unsigned long *lengths, my_bool *nulls)
{
	json_t *o;
	char *text;

	if (mysql_stmt_execute(st) || mysql_stmt_fetch(st))
		die(mysql_stmt_error(st));
	o = json_object();
	for (int i = 0; i < COLUMNS; i++) {
		json_t *v = json_null();

		if (!nulls[i]) {
			cells[i][lengths[i]] = '\0';
			if (i == 5 || i == 7)
				v = json_loads(cells[i], 0, NULL);
			else if (i == 6)
				v = json_integer(atoll(cells[i]));
			else
				v = json_stringn(cells[i], lengths[i]);
		}
		json_object_set_new(o, names[i], v);
	}
	mysql_stmt_free_result(st);
	text = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	return text;
}

static void *serve(void *arg)
{
	static _Thread_local char cells[COLUMNS][CELL];
	unsigned long lengths[COLUMNS];
	my_bool nulls[COLUMNS];
	MYSQL_BIND in[2], out[COLUMNS];
	MYSQL *db = mysql_init(NULL);
	MYSQL_STMT *st = prepare(db, in, out, cells, lengths, nulls);
	FCGX_Request r;

	(void)arg;
	FCGX_InitRequest(&r, listener, FCGI_FAIL_ACCEPT_ON_INTR);
	while (FCGX_Accept_r(&r) >= 0) {
		char *text = body(st, cells, lengths, nulls);

		FCGX_PutS("Status: 200\r\nContent-Type: application/json\r\n\r\n", r.out);
		FCGX_PutS(text, r.out);
		free(text);
		FCGX_Finish_r(&r);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int threads;

	if (argc != 6)
		return 2;
	db_socket = argv[2];
	bank_no = atoll(argv[3]);
	model_id = argv[4];
	threads = atoi(argv[5]);
	signal(SIGPIPE, SIG_IGN);
	FCGX_Init();
	listener = FCGX_OpenSocket(argv[1], 1024);
	if (listener < 0)
		die("socket");
	chmod(argv[1], 0666);
	for (int i = 1; i < threads; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, serve, NULL))
			die("thread");
	}
	serve(NULL);
	return 0;
}
