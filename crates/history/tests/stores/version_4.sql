-- A history as unflake wrote it when the digests of reports were made of Rust's debug output: three reports.
PRAGMA application_id = 1970169452;
PRAGMA user_version = 4;
PRAGMA foreign_keys = off;
BEGIN TRANSACTION;
CREATE TABLE block(first INTEGER PRIMARY KEY, last INTEGER NOT NULL, counts BLOB NOT NULL);
CREATE TABLE detail(
    run INTEGER PRIMARY KEY, rung TEXT, vm INTEGER, signature INTEGER, bug TEXT, verdict TEXT
);
INSERT INTO "detail" VALUES(2,NULL,NULL,1,NULL,NULL);
INSERT INTO "detail" VALUES(3,NULL,NULL,NULL,'TR7',NULL);
CREATE TABLE failure(run INTEGER PRIMARY KEY, fingerprint INTEGER NOT NULL, past INTEGER);
INSERT INTO "failure" VALUES(2,1,NULL);
CREATE TABLE fingerprint(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
INSERT INTO "fingerprint" VALUES(1,'1|failed|AssertionError||assert # == #');
CREATE TABLE import(
    id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, source TEXT NOT NULL, first INTEGER NOT NULL,
    last INTEGER NOT NULL, installed BLOB, project TEXT, jobs INTEGER, hash_seed TEXT
);
INSERT INTO "import" VALUES(1,X'5DB50BBAE17D4B17B1E5E07BD303235EF647FD80944BD1620FB8A34CFB6CE4BF','night.xml',1,2,NULL,NULL,NULL,NULL);
INSERT INTO "import" VALUES(2,X'44C6337B4191F6BA66030D7A3670041D8EEB6A4491939EF30F1D479EF21E740F','runs.csv',3,4,NULL,NULL,NULL,NULL);
INSERT INTO "import" VALUES(3,X'A28537E854C5D1F18E8C8330C9A00CCB280209D3B79E38CD7B21571A731D6391','runs.jsonl',5,5,NULL,NULL,NULL,NULL);
CREATE TABLE label(
    id INTEGER PRIMARY KEY, time INTEGER NOT NULL, test INTEGER NOT NULL, run INTEGER, kind TEXT NOT NULL,
    value TEXT NOT NULL, author TEXT NOT NULL
);
CREATE TABLE leftover(
    id INTEGER PRIMARY KEY, place TEXT NOT NULL, path TEXT, first INTEGER NOT NULL, last INTEGER NOT NULL
);
CREATE TABLE outcome(
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, is_pass INTEGER NOT NULL, is_failure INTEGER NOT NULL
);
INSERT INTO "outcome" VALUES(0,'passed',1,0);
INSERT INTO "outcome" VALUES(1,'failed',0,1);
INSERT INTO "outcome" VALUES(2,'error',0,1);
INSERT INTO "outcome" VALUES(3,'skipped',0,0);
INSERT INTO "outcome" VALUES(4,'xfailed',0,0);
INSERT INTO "outcome" VALUES(5,'xpassed',1,0);
INSERT INTO "outcome" VALUES(6,'not-run',0,0);
INSERT INTO "outcome" VALUES(7,'timeout',0,1);
INSERT INTO "outcome" VALUES(8,'crashed',0,1);
CREATE TABLE passed(
    project TEXT NOT NULL, source TEXT NOT NULL, time INTEGER NOT NULL, installed BLOB NOT NULL, tests TEXT NOT NULL,
    files TEXT NOT NULL, PRIMARY KEY(project, source)
);
CREATE TABLE past(
    id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, before INTEGER, tests TEXT NOT NULL
);
CREATE TABLE provenance(
    id INTEGER PRIMARY KEY, stream INTEGER NOT NULL REFERENCES stream(id), revision TEXT NOT NULL,
    environment TEXT NOT NULL, job TEXT NOT NULL, UNIQUE(stream, revision, environment, job)
);
INSERT INTO "provenance" VALUES(1,1,'4f1c','linux','night');
INSERT INTO "provenance" VALUES(2,2,'','','');
INSERT INTO "provenance" VALUES(3,3,'','','');
CREATE TABLE run(
    id INTEGER PRIMARY KEY, test INTEGER NOT NULL, time INTEGER NOT NULL, outcome INTEGER NOT NULL,
    provenance INTEGER NOT NULL, attempt INTEGER NOT NULL, duration INTEGER
);
INSERT INTO "run" VALUES(1,1,1794880800000,0,1,1,200000);
INSERT INTO "run" VALUES(2,2,1794880800000,1,1,1,NULL);
INSERT INTO "run" VALUES(3,1,1794884400000,1,2,1,NULL);
INSERT INTO "run" VALUES(4,3,1794884401000,0,2,1,NULL);
INSERT INTO "run" VALUES(5,3,1794970800000,0,3,1,NULL);
CREATE TABLE signature(
    id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE, example TEXT NOT NULL
);
INSERT INTO "signature" VALUES(1,'assert # == #','assert 3 == 4');
CREATE TABLE stream(
    id INTEGER PRIMARY KEY, branch TEXT NOT NULL, release TEXT NOT NULL, UNIQUE(branch, release)
);
INSERT INTO "stream" VALUES(1,'main','');
INSERT INTO "stream" VALUES(2,'release "5"','R5');
INSERT INTO "stream" VALUES(3,'','');
CREATE TABLE test(
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, copy INTEGER NOT NULL, by_framework INTEGER NOT NULL,
    UNIQUE(name, copy, by_framework)
);
INSERT INTO "test" VALUES(1,'shop.Cart.total',0,0);
INSERT INTO "test" VALUES(2,'shop.Cart.empty',0,0);
INSERT INTO "test" VALUES(3,'shop.Mail.sent',0,0);
CREATE VIEW runs AS
SELECT run.id, test.name AS test, test.copy,
    strftime('%Y-%m-%dT%H:%M:%fZ', run.time / 1000.0, 'unixepoch') AS time,
    outcome.name AS outcome, run.attempt, run.duration / 1e6 AS seconds, stream.branch, stream.release,
    provenance.revision, provenance.environment, provenance.job, detail.rung, detail.vm,
    signature.text AS signature, detail.bug, detail.verdict, import.source, fingerprint.text AS fingerprint
FROM run JOIN test ON test.id = run.test JOIN outcome ON outcome.id = run.outcome
JOIN provenance ON provenance.id = run.provenance JOIN stream ON stream.id = provenance.stream
JOIN import ON run.id BETWEEN import.first AND import.last
LEFT JOIN detail ON detail.run = run.id LEFT JOIN signature ON signature.id = detail.signature
LEFT JOIN failure ON failure.run = run.id LEFT JOIN fingerprint ON fingerprint.id = failure.fingerprint;
CREATE VIEW daily_counts AS
SELECT run.test AS test, run.time / 86400000 - (run.time % 86400000 < 0) AS day, provenance.stream AS stream,
    count(*) AS runs, sum(outcome.is_failure) AS failures,
    sum(outcome.is_failure AND detail.bug IS NOT NULL) AS with_bug
FROM run JOIN outcome ON outcome.id = run.outcome JOIN provenance ON provenance.id = run.provenance
LEFT JOIN detail ON detail.run = run.id
WHERE run.attempt = 1 AND (outcome.is_pass OR outcome.is_failure)
GROUP BY run.test, day, provenance.stream;
COMMIT;
