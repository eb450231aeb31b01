-- Names in the words of the code: messages that must arrive, agents' own ids of sessions, and agents' requests.
ALTER TABLE letters RENAME TO notices;
DROP INDEX letters_open;
CREATE INDEX notices_open ON notices (id) WHERE state IN ('pending', 'sending');
ALTER TABLE session_natives RENAME TO agent_sessions;
ALTER TABLE agent_sessions RENAME COLUMN native TO id;
ALTER TABLE ask_natives RENAME TO ask_requests;
ALTER TABLE ask_requests RENAME COLUMN native TO request;
DROP INDEX ask_natives_of;
CREATE INDEX ask_requests_of ON ask_requests (ask);
-- The time of the clock when next was computed.
ALTER TABLE jobs RENAME COLUMN reckoned TO planned;
