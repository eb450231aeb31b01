-- How often Telegram lets ductor call, as its refusals taught: for each chat that it slowed down, and for the bot (0).
CREATE TABLE rates (
    chat  INTEGER PRIMARY KEY,
    every INTEGER NOT NULL, -- nanoseconds between two calls
    burst INTEGER NOT NULL, -- calls at once
    until INTEGER NOT NULL  -- milliseconds: no call before it
) STRICT;
