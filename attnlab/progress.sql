-- Each version's statements lift the schema by one; `PRAGMA user_version` holds how many have run.
-- version 1
CREATE TABLE challenge (
    slug TEXT PRIMARY KEY,
    started INTEGER NOT NULL DEFAULT 0,
    hints INTEGER NOT NULL DEFAULT 0,
    revealed INTEGER NOT NULL DEFAULT 0,
    solution_seen INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE grade (
    id INTEGER PRIMARY KEY,
    slug TEXT NOT NULL,
    at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
    outcome TEXT NOT NULL,
    score REAL NOT NULL,
    file TEXT NOT NULL
);
CREATE INDEX grade_slug ON grade (slug);
-- version 2
ALTER TABLE challenge ADD COLUMN peeked INTEGER NOT NULL DEFAULT 0;
-- version 3
CREATE TABLE event (
    id INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    kind TEXT NOT NULL,
    base TEXT NOT NULL,
    bug TEXT NOT NULL DEFAULT '',
    question TEXT NOT NULL DEFAULT '',
    outcome TEXT NOT NULL DEFAULT '',
    seconds REAL NOT NULL DEFAULT 0,
    hints INTEGER NOT NULL DEFAULT 0,
    interview INTEGER NOT NULL DEFAULT 0,
    text TEXT NOT NULL DEFAULT ''
);
CREATE INDEX event_base ON event (base);
INSERT INTO event (at, kind, base, outcome, text)
    SELECT CAST(strftime('%s', at) AS REAL), 'grade', slug, outcome, file FROM grade;
-- version 4
ALTER TABLE event ADD COLUMN category TEXT NOT NULL DEFAULT '';
