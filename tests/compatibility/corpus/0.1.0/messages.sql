PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE answers (
    run TEXT PRIMARY KEY, key TEXT NOT NULL, message TEXT NOT NULL, thread TEXT, token TEXT NOT NULL, created_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE approvals (
    request TEXT PRIMARY KEY, kind TEXT NOT NULL, session TEXT NOT NULL, run TEXT, binding INTEGER NOT NULL, chat TEXT NOT NULL,
    message TEXT, prompt TEXT NOT NULL, answers TEXT NOT NULL, code TEXT NOT NULL, state TEXT NOT NULL,
    option TEXT NOT NULL, by_id TEXT NOT NULL, by_name TEXT NOT NULL, settlement TEXT, created_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE bindings (
    id INTEGER PRIMARY KEY, chat TEXT NOT NULL, place TEXT NOT NULL, kind TEXT NOT NULL, root TEXT,
    session TEXT NOT NULL, workspace TEXT NOT NULL, created_by TEXT NOT NULL, created_ms INTEGER NOT NULL,
    UNIQUE (chat, place)
);
INSERT INTO "bindings" VALUES(1,'room','t1','group','m1','s1','/home/ann/shop','u1',1767225600000);
CREATE TABLE cursors (
    session TEXT PRIMARY KEY, epoch TEXT NOT NULL, seq INTEGER NOT NULL, state TEXT NOT NULL, used_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "facts" VALUES('owner','lark app');
CREATE TABLE inbox (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, chat TEXT NOT NULL, thread TEXT,
    sender TEXT NOT NULL, body TEXT NOT NULL, at_ms INTEGER NOT NULL, received_ms INTEGER NOT NULL,
    state TEXT NOT NULL, batch TEXT, message_id TEXT NOT NULL, binding INTEGER, session TEXT, run TEXT, queue_id TEXT,
    reason TEXT NOT NULL, tries INTEGER NOT NULL, next_ms INTEGER NOT NULL
);
INSERT INTO "inbox" VALUES(1,'m1','message','room','t1','u1','{"type":"message","key":"m1","target":{"chat":"room","thread":"t1"},"chat_kind":"group","sender":{"id":"u1","name":"Ann","is_bot":false},"text":"Please repair the total.","mentioned":true,"reply_to":null,"attachments":[],"at_ms":1767225600000}',1767225600000,1767225600000,'received',NULL,'chat-f42ea86177717476dbea285dba64f73bfeab3ca1',NULL,NULL,NULL,NULL,'',0,0);
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, chat TEXT NOT NULL, thread TEXT, binding INTEGER,
    body TEXT NOT NULL, state TEXT NOT NULL, is_optional INTEGER NOT NULL, created_ms INTEGER NOT NULL, tries INTEGER NOT NULL,
    next_ms INTEGER NOT NULL, tried_ms INTEGER, message TEXT, reason TEXT NOT NULL
);
INSERT INTO "outbox" VALUES(1,'t-1','room',NULL,1,'{"type":"react","message":"m1","reaction":"started"}','pending',1,1767225600000,0,0,NULL,NULL,'');
CREATE INDEX inbox_by_state ON inbox (state, id);
CREATE INDEX inbox_by_message ON inbox (message_id);
CREATE INDEX inbox_by_place ON inbox (chat, thread, at_ms);
CREATE INDEX outbox_by_state ON outbox (state, chat, id);
CREATE INDEX outbox_by_message ON outbox (message);
CREATE INDEX bindings_by_session ON bindings (session);
CREATE INDEX approvals_by_session ON approvals (session, state);
COMMIT;
