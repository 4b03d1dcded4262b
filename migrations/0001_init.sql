-- hindsight-fcgi schema, version 1.
-- Rerunnable when half done: every statement may run twice. One statement ends with ';' at a line's end.
-- Ids, tags and names compare byte by byte (utf8mb4_nopad_bin); times are UTC. JSON is LONGTEXT
-- without CHECK and parsed in C. No foreign keys: a deleted bank's rows are purged by its number.

CREATE TABLE IF NOT EXISTS banks (
	bank_no BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
	bank_id VARCHAR(192) NOT NULL,
	name MEDIUMTEXT NOT NULL,
	mission MEDIUMTEXT NOT NULL,
	skepticism TINYINT NOT NULL DEFAULT 3,
	literalism TINYINT NOT NULL DEFAULT 3,
	empathy TINYINT NOT NULL DEFAULT 3,
	config LONGTEXT NOT NULL,
	created_at DATETIME(6) NOT NULL,
	updated_at DATETIME(6) NOT NULL,
	PRIMARY KEY (bank_no),
	UNIQUE KEY banks_id (bank_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

-- The commit clock: one row a bank, locked first by every transaction that writes memories.
CREATE TABLE IF NOT EXISTS bank_clock (
	bank_no BIGINT UNSIGNED NOT NULL,
	last_write_at DATETIME(6) NOT NULL,
	PRIMARY KEY (bank_no)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

-- Numbers of deleted banks whose rows are still to be removed.
CREATE TABLE IF NOT EXISTS purge_queue (
	bank_no BIGINT UNSIGNED NOT NULL,
	bank_id VARCHAR(192) NOT NULL,
	queued_at DATETIME(6) NOT NULL,
	PRIMARY KEY (bank_no)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS bank_stats_cache (
	bank_no BIGINT UNSIGNED NOT NULL,
	computed_at DATETIME(6) NOT NULL,
	body LONGTEXT NOT NULL,
	PRIMARY KEY (bank_no)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS documents (
	bank_no BIGINT UNSIGNED NOT NULL,
	document_id VARCHAR(512) NOT NULL,
	document_no BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
	original_text LONGTEXT NULL,
	text_chars BIGINT NOT NULL DEFAULT 0,
	content_hash VARCHAR(64) NOT NULL,
	retain_params LONGTEXT NOT NULL,
	tags LONGTEXT NOT NULL,
	created_at DATETIME(6) NOT NULL,
	updated_at DATETIME(6) NOT NULL,
	PRIMARY KEY (bank_no, document_id),
	UNIQUE KEY documents_no (document_no),
	KEY documents_updated (bank_no, updated_at, created_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS document_tags (
	bank_no BIGINT UNSIGNED NOT NULL,
	tag VARCHAR(255) NOT NULL,
	document_no BIGINT UNSIGNED NOT NULL,
	PRIMARY KEY (bank_no, document_no, tag)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS chunks (
	bank_no BIGINT UNSIGNED NOT NULL,
	document_id VARCHAR(512) NOT NULL,
	chunk_index INT NOT NULL,
	chunk_text MEDIUMTEXT NOT NULL,
	content_hash CHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	created_at DATETIME(6) NOT NULL,
	PRIMARY KEY (bank_no, document_id, chunk_index)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

-- Facts and observations. unit_no is the short key of all side tables; id is what the wire shows.
CREATE TABLE IF NOT EXISTS memory_units (
	bank_no BIGINT UNSIGNED NOT NULL,
	unit_no BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
	id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	fact_type ENUM('world','experience','observation') NOT NULL,
	text MEDIUMTEXT NOT NULL,
	context MEDIUMTEXT NULL,
	text_signals MEDIUMTEXT NULL,
	event_date DATETIME(6) NULL,
	occurred_start DATETIME(6) NULL,
	occurred_end DATETIME(6) NULL,
	mentioned_at DATETIME(6) NULL,
	document_id VARCHAR(512) NULL,
	chunk_index INT NULL,
	metadata LONGTEXT NULL,
	tags LONGTEXT NOT NULL,
	observation_scopes LONGTEXT NULL,
	proof_count INT NULL,
	terms MEDIUMBLOB NULL,
	consolidated_at DATETIME(6) NULL,
	consolidation_failed_at DATETIME(6) NULL,
	edited_at DATETIME(6) NULL,
	created_at DATETIME(6) NOT NULL,
	updated_at DATETIME(6) NOT NULL,
	PRIMARY KEY (bank_no, unit_no),
	UNIQUE KEY memory_units_no (unit_no),
	UNIQUE KEY memory_units_id (id),
	KEY memory_units_updated (bank_no, updated_at),
	KEY memory_units_document (bank_no, document_id),
	KEY memory_units_mentioned (bank_no, mentioned_at, created_at),
	KEY memory_units_event (bank_no, fact_type, event_date),
	KEY memory_units_pending (bank_no, consolidated_at, consolidation_failed_at, fact_type, created_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS unit_tags (
	bank_no BIGINT UNSIGNED NOT NULL,
	tag VARCHAR(255) NOT NULL,
	unit_no BIGINT UNSIGNED NOT NULL,
	PRIMARY KEY (bank_no, tag, unit_no),
	KEY unit_tags_unit (bank_no, unit_no)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS observation_sources (
	bank_no BIGINT UNSIGNED NOT NULL,
	observation_no BIGINT UNSIGNED NOT NULL,
	source_no BIGINT UNSIGNED NOT NULL,
	pos INT NOT NULL,
	PRIMARY KEY (bank_no, observation_no, source_no),
	KEY observation_sources_source (bank_no, source_no)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS observation_history (
	history_no BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
	bank_no BIGINT UNSIGNED NOT NULL,
	observation_no BIGINT UNSIGNED NOT NULL,
	content LONGTEXT NOT NULL,
	changed_at DATETIME(6) NOT NULL,
	PRIMARY KEY (history_no),
	KEY observation_history_unit (bank_no, observation_no, changed_at, history_no)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS entities (
	bank_no BIGINT UNSIGNED NOT NULL,
	entity_no BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
	id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	canonical_name VARCHAR(512) NOT NULL,
	name_key VARCHAR(700) NOT NULL,
	entity_kind ENUM('regular','label') NOT NULL DEFAULT 'regular',
	mention_count BIGINT NOT NULL DEFAULT 0,
	first_seen DATETIME(6) NULL,
	last_seen DATETIME(6) NULL,
	metadata LONGTEXT NULL,
	PRIMARY KEY (bank_no, entity_no),
	UNIQUE KEY entities_no (entity_no),
	UNIQUE KEY entities_id (id),
	UNIQUE KEY entities_name (bank_no, name_key)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS unit_entities (
	bank_no BIGINT UNSIGNED NOT NULL,
	unit_no BIGINT UNSIGNED NOT NULL,
	entity_no BIGINT UNSIGNED NOT NULL,
	pos INT NOT NULL DEFAULT 0,
	PRIMARY KEY (bank_no, unit_no, entity_no),
	KEY unit_entities_entity (bank_no, entity_no, unit_no)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS entity_cooccurrences (
	bank_no BIGINT UNSIGNED NOT NULL,
	entity_no_1 BIGINT UNSIGNED NOT NULL,
	entity_no_2 BIGINT UNSIGNED NOT NULL,
	cooccurrence_count BIGINT NOT NULL,
	last_cooccurred DATETIME(6) NULL,
	PRIMARY KEY (bank_no, entity_no_1, entity_no_2),
	KEY entity_cooccurrences_2 (bank_no, entity_no_2)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

-- Stored links: semantic and causal. Temporal and entity links are derived.
CREATE TABLE IF NOT EXISTS memory_links (
	bank_no BIGINT UNSIGNED NOT NULL,
	from_no BIGINT UNSIGNED NOT NULL,
	to_no BIGINT UNSIGNED NOT NULL,
	link_type ENUM('semantic','caused_by','causes','enables','prevents') NOT NULL,
	weight DOUBLE NOT NULL,
	PRIMARY KEY (bank_no, from_no, to_no, link_type),
	KEY memory_links_to (bank_no, to_no)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

-- Keyword search: one row a term and unit. fact_type and length stand here so that scoring joins nothing.
CREATE TABLE IF NOT EXISTS postings (
	bank_no BIGINT UNSIGNED NOT NULL,
	term BIGINT UNSIGNED NOT NULL,
	unit_no BIGINT UNSIGNED NOT NULL,
	fact_type TINYINT UNSIGNED NOT NULL,
	tf SMALLINT UNSIGNED NOT NULL,
	len MEDIUMINT UNSIGNED NOT NULL,
	PRIMARY KEY (bank_no, term, unit_no)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS posting_terms (
	bank_no BIGINT UNSIGNED NOT NULL,
	term BIGINT UNSIGNED NOT NULL,
	df BIGINT NOT NULL,
	PRIMARY KEY (bank_no, term)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS posting_stats (
	bank_no BIGINT UNSIGNED NOT NULL,
	units BIGINT NOT NULL,
	total_len BIGINT NOT NULL,
	PRIMARY KEY (bank_no)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS embedders (
	embedder_no INT UNSIGNED NOT NULL AUTO_INCREMENT,
	tag VARCHAR(255) NOT NULL,
	PRIMARY KEY (embedder_no),
	UNIQUE KEY embedders_tag (tag)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

-- float32, little-endian, normalised to length 1.
CREATE TABLE IF NOT EXISTS unit_embeddings (
	bank_no BIGINT UNSIGNED NOT NULL,
	unit_no BIGINT UNSIGNED NOT NULL,
	embedder_no INT UNSIGNED NOT NULL,
	fact_type TINYINT UNSIGNED NOT NULL,
	vec BLOB NOT NULL,
	PRIMARY KEY (bank_no, unit_no)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS mental_models (
	bank_no BIGINT UNSIGNED NOT NULL,
	id VARCHAR(64) NOT NULL,
	name VARCHAR(256) NOT NULL,
	source_query MEDIUMTEXT NOT NULL,
	content MEDIUMTEXT NOT NULL,
	structured_content MEDIUMTEXT NULL,
	tags LONGTEXT NOT NULL,
	max_tokens INT NOT NULL DEFAULT 2048,
	trigger_json LONGTEXT NOT NULL,
	reflect_response LONGTEXT NULL,
	embedding BLOB NULL,
	embedder_no INT UNSIGNED NULL,
	last_refreshed_at DATETIME(6) NOT NULL,
	last_memory_seen_at DATETIME(6) NULL,
	read_until DATETIME(6) NOT NULL,
	last_refresh_failed_at DATETIME(6) NULL,
	last_full_refreshed_at DATETIME(6) NULL,
	last_cron_checked_at DATETIME(6) NULL,
	last_refreshed_source_query MEDIUMTEXT NULL,
	has_cron TINYINT NOT NULL DEFAULT 0,
	after_consolidation TINYINT NOT NULL DEFAULT 0,
	created_at DATETIME(6) NOT NULL,
	PRIMARY KEY (bank_no, id),
	KEY mental_models_refreshed (bank_no, last_refreshed_at, id),
	KEY mental_models_cron (has_cron, bank_no, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS mental_model_tags (
	bank_no BIGINT UNSIGNED NOT NULL,
	tag VARCHAR(255) NOT NULL,
	mental_model_id VARCHAR(64) NOT NULL,
	PRIMARY KEY (bank_no, mental_model_id, tag),
	KEY mental_model_tags_tag (bank_no, tag)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS mental_model_history (
	history_no BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
	bank_no BIGINT UNSIGNED NOT NULL,
	mental_model_id VARCHAR(64) NOT NULL,
	kind ENUM('version','refresh_failed') NOT NULL,
	content LONGTEXT NOT NULL,
	changed_at DATETIME(6) NOT NULL,
	PRIMARY KEY (history_no),
	KEY mental_model_history_model (bank_no, mental_model_id, kind, changed_at, history_no)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS directives (
	bank_no BIGINT UNSIGNED NOT NULL,
	id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	name MEDIUMTEXT NOT NULL,
	content MEDIUMTEXT NOT NULL,
	priority BIGINT NOT NULL DEFAULT 0,
	is_active TINYINT NOT NULL DEFAULT 1,
	tags LONGTEXT NOT NULL,
	created_at DATETIME(6) NOT NULL,
	updated_at DATETIME(6) NOT NULL,
	PRIMARY KEY (bank_no, id),
	KEY directives_order (bank_no, priority, created_at, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS directive_tags (
	bank_no BIGINT UNSIGNED NOT NULL,
	tag VARCHAR(255) NOT NULL,
	directive_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	PRIMARY KEY (bank_no, directive_id, tag)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

-- The one queue. run_key (bank, kind, subject) is set only while processing: UNIQUE decides claims.
CREATE TABLE IF NOT EXISTS async_operations (
	operation_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	bank_no BIGINT UNSIGNED NOT NULL,
	operation_type VARCHAR(64) NOT NULL,
	status ENUM('pending','processing','completed','failed','cancelled') NOT NULL,
	task_payload LONGTEXT NULL,
	result_metadata LONGTEXT NOT NULL,
	error_message MEDIUMTEXT NULL,
	retry_count INT NOT NULL DEFAULT 0,
	next_retry_at DATETIME(6) NULL,
	worker_id VARCHAR(255) NULL,
	claimed_at DATETIME(6) NULL,
	lease_until DATETIME(6) NULL,
	attempt INT NOT NULL DEFAULT 0,
	run_key BINARY(20) NULL,
	subject_id VARCHAR(512) NULL,
	parent_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NULL,
	is_parent TINYINT NOT NULL DEFAULT 0,
	created_at DATETIME(6) NOT NULL,
	updated_at DATETIME(6) NOT NULL,
	completed_at DATETIME(6) NULL,
	PRIMARY KEY (operation_id),
	UNIQUE KEY operations_run_key (run_key),
	KEY operations_claim (status, operation_type, created_at, operation_id),
	KEY operations_fair (status, bank_no, created_at, operation_id),
	KEY operations_lease (status, lease_until),
	KEY operations_bank (bank_no, created_at, operation_id),
	KEY operations_subject (bank_no, operation_type, status, subject_id),
	KEY operations_parent (parent_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

-- Small facts of the installation: last tick, last reconcile.
CREATE TABLE IF NOT EXISTS server_state (
	name VARCHAR(64) NOT NULL,
	value VARCHAR(255) NOT NULL,
	updated_at DATETIME(6) NOT NULL,
	PRIMARY KEY (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;
