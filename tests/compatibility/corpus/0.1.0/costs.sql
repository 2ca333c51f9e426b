PRAGMA user_version = 2;
BEGIN TRANSACTION;
CREATE TABLE calls (
    id TEXT PRIMARY KEY, at_ms INTEGER NOT NULL, day TEXT NOT NULL,
    session TEXT NOT NULL, root TEXT NOT NULL, run TEXT, turn TEXT,
    folder TEXT NOT NULL, purpose TEXT NOT NULL, provider TEXT NOT NULL, model TEXT NOT NULL,
    input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL, cache_write INTEGER NOT NULL,
    reasoning INTEGER NOT NULL, price TEXT, cost INTEGER, reserved INTEGER, first_ms INTEGER, total_ms INTEGER,
    status TEXT NOT NULL, origin TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "calls" VALUES('call-1',1767225600000,'2026-01-01','s1','s1',NULL,NULL,'/home/ann/shop','main','lab','m',1200,34,1000,0,0,'2026-01',5000000000,6000000000,NULL,NULL,'completed','call');
CREATE TABLE facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO "facts" VALUES('created_ms',1795967440740);
CREATE TABLE spending (
    day TEXT NOT NULL, folder TEXT NOT NULL, cost INTEGER NOT NULL, held INTEGER NOT NULL, PRIMARY KEY (day, folder)
) WITHOUT ROWID;
INSERT INTO "spending" VALUES('2026-01-01','/home/ann/shop',5000000000,0);
CREATE INDEX calls_by_date ON calls (day);
CREATE TRIGGER call_begun AFTER INSERT ON calls BEGIN
    INSERT INTO spending VALUES (
        new.day, new.folder, coalesce(new.cost, 0), CASE WHEN new.cost IS NULL THEN coalesce(new.reserved, 0) ELSE 0 END
    ) ON CONFLICT (day, folder) DO UPDATE SET cost = cost + excluded.cost, held = held + excluded.held;
END;
CREATE TRIGGER call_ended AFTER UPDATE ON calls BEGIN
    UPDATE spending SET
        cost = cost - coalesce(old.cost, 0) + coalesce(new.cost, 0),
        held = held - CASE WHEN old.cost IS NULL THEN coalesce(old.reserved, 0) ELSE 0 END
            + CASE WHEN new.cost IS NULL THEN coalesce(new.reserved, 0) ELSE 0 END
    WHERE day = new.day AND folder = new.folder;
END;
COMMIT;
