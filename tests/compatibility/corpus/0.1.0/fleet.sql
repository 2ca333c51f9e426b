PRAGMA user_version = 0;
BEGIN TRANSACTION;
CREATE TABLE artefact (
	job INTEGER NOT NULL, 
	round INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	sha256 TEXT NOT NULL, 
	size INTEGER NOT NULL, 
	content BLOB NOT NULL, 
	at_ms BIGINT NOT NULL, 
	PRIMARY KEY (job, round, kind), 
	FOREIGN KEY(job) REFERENCES job (id)
);
CREATE TABLE change (
	forge TEXT NOT NULL, 
	repo TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	head TEXT NOT NULL, 
	base TEXT NOT NULL, 
	state TEXT NOT NULL, 
	seen_ms BIGINT NOT NULL, 
	PRIMARY KEY (forge, repo, number)
);
INSERT INTO "change" VALUES('forge','team/app',1,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','main','open',1795967440769);
INSERT INTO "change" VALUES('forge','team/app',2,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','main','open',1795967440774);
CREATE TABLE circuit (
	name TEXT NOT NULL, 
	failures INTEGER NOT NULL, 
	open_until_ms BIGINT NOT NULL, 
	reason TEXT NOT NULL, 
	PRIMARY KEY (name)
);
CREATE TABLE counter (
	name TEXT NOT NULL, 
	count BIGINT NOT NULL, 
	PRIMARY KEY (name)
);
CREATE TABLE delivery (
	forge TEXT NOT NULL, 
	delivery TEXT NOT NULL, 
	body_hash TEXT NOT NULL, 
	at_ms BIGINT NOT NULL, 
	PRIMARY KEY (forge, delivery)
);
CREATE TABLE finding (
	job INTEGER NOT NULL, 
	fingerprint TEXT NOT NULL, 
	path TEXT NOT NULL, 
	line INTEGER NOT NULL, 
	severity TEXT NOT NULL, 
	text_hash TEXT NOT NULL, 
	state TEXT NOT NULL, 
	PRIMARY KEY (job, fingerprint), 
	FOREIGN KEY(job) REFERENCES job (id)
);
CREATE TABLE fleet_version (
	version INTEGER NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "fleet_version" VALUES(2);
CREATE TABLE job (
	id INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	forge TEXT NOT NULL, 
	repo TEXT NOT NULL, 
	org TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	head TEXT NOT NULL, 
	base TEXT NOT NULL, 
	state TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	cause TEXT NOT NULL, 
	provider TEXT NOT NULL, 
	prompt TEXT NOT NULL, 
	priority INTEGER NOT NULL, 
	budget_usd FLOAT, 
	attempts INTEGER NOT NULL, 
	round INTEGER NOT NULL, 
	slot INTEGER, 
	fence BIGINT NOT NULL, 
	due_ms BIGINT NOT NULL, 
	deadline_ms BIGINT, 
	created_ms BIGINT NOT NULL, 
	started_ms BIGINT, 
	ended_ms BIGINT, 
	result TEXT, 
	has_transcript BOOLEAN NOT NULL, 
	engine_round INTEGER NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE ("key")
);
INSERT INTO "job" VALUES(1,'review/forge/team/app/1/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','review','forge','team/app','team',1,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','main','cancelled','not needed','person','','',100,NULL,0,0,NULL,0,1795967440769,NULL,1795967440769,NULL,1795967440775,NULL,1,-1);
INSERT INTO "job" VALUES(2,'review/forge/team/app/2/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','review','forge','team/app','team',2,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','main','queued','','person','','',100,NULL,0,0,NULL,0,1795967440774,NULL,1795967440774,NULL,NULL,NULL,1,-1);
CREATE TABLE ledger (
	id INTEGER NOT NULL, 
	job INTEGER NOT NULL, 
	repo TEXT NOT NULL, 
	org TEXT NOT NULL, 
	provider TEXT NOT NULL, 
	calls INTEGER NOT NULL, 
	tokens BIGINT NOT NULL, 
	usd FLOAT NOT NULL, 
	at_ms BIGINT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(job) REFERENCES job (id)
);
CREATE TABLE post (
	id INTEGER NOT NULL, 
	job INTEGER NOT NULL, 
	forge TEXT NOT NULL, 
	repo TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	target TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	sent_hash TEXT NOT NULL, 
	confirmed_hash TEXT NOT NULL, 
	state TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	forge_id TEXT, 
	expected_head TEXT NOT NULL, 
	at_ms BIGINT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (forge, repo, number, target, fingerprint), 
	FOREIGN KEY(job) REFERENCES job (id)
);
CREATE TABLE session (
	session TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	cwd TEXT NOT NULL, 
	header BLOB NOT NULL, 
	summary BLOB NOT NULL, 
	seq INTEGER NOT NULL, 
	slot INTEGER NOT NULL, 
	fence BIGINT NOT NULL, 
	created_ms BIGINT NOT NULL, 
	modified_ms BIGINT NOT NULL, 
	PRIMARY KEY (session)
);
CREATE TABLE session_entry (
	session TEXT NOT NULL, 
	seq INTEGER NOT NULL, 
	slot INTEGER NOT NULL, 
	fence BIGINT NOT NULL, 
	entry BLOB NOT NULL, 
	PRIMARY KEY (session, seq)
);
CREATE TABLE slot (
	id INTEGER NOT NULL, 
	host TEXT NOT NULL, 
	boot TEXT NOT NULL, 
	pid INTEGER NOT NULL, 
	fence BIGINT NOT NULL, 
	expires_ms BIGINT NOT NULL, 
	is_drained BOOLEAN NOT NULL, 
	PRIMARY KEY (id)
);
CREATE INDEX job_by_end ON job (has_transcript, ended_ms);
CREATE INDEX job_to_hand_over ON job (id) WHERE engine_round < round;
CREATE INDEX job_by_state ON job (state, due_ms);
CREATE INDEX job_by_change ON job (forge, repo, number, state);
CREATE INDEX job_by_org ON job (org, state);
CREATE INDEX session_by_folder ON session (kind, cwd, modified_ms);
CREATE INDEX post_by_job ON post (job, state);
CREATE INDEX ledger_by_org ON ledger (org, at_ms);
CREATE INDEX ledger_by_repo ON ledger (repo, at_ms);
COMMIT;
