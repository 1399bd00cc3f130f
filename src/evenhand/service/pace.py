"""How fast the service goes round."""

AHEAD = 0.1  # seconds of traffic that are published and leased ahead
POLL = 0.2  # seconds between a web worker's looks at what changed
STALE = 0.7  # seconds after a look for which rows may be handed out
WAIT = 0.3  # seconds that an asker waits for a row that can be learnt from
PATIENCE = 5.0  # seconds until a request that waits for the database is told to try again
"""POLL + STALE must stay below 1 s: so soon no row of old terms is handed out any more."""
