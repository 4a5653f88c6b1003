"""The catalogue in PostgreSQL, for a fleet: a schema for each crawl, written by all its workers.

`catalogue` is what the node holds, `migrating` makes the tables, `staging` brings rows there, `statements` reads them
back; `chunks` keeps long queues of the frontier in the same schema. The SQL that is longer than a line lies in `*.sql`
beside them.
"""

from .catalogue import PostgresCatalogue, set_aside
from .chunks import PostgresChunks

__all__ = ["PostgresCatalogue", "PostgresChunks", "set_aside"]
