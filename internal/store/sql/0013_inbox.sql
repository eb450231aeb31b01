-- The text of a handled update is of no use, and may hold a secret that an agent asked for.
UPDATE inbox SET raw = x'' WHERE handled <> 0;
