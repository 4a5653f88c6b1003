"""One crawl by workers on any number of machines (N1-N8).

The frontier is on Valkey or Redis, the catalogue in PostgreSQL, the archive in a store of objects. A worker is
stateless but for its own directory: a spool of what is not uploaded yet, its event files, what it learned of sites.
Everything else is on the engines, so a worker may be added, killed or restarted at any time. What must stay true,
beside what holds on one machine:

- A page is final when its segment is in the store of objects and confirmed. Until then it is pending on a segment that
  names its writer; who writes under which number is known to all (`registry`).
- What lies in the spool of a worker belongs to its disk. It is settled and uploaded when a worker is started on that
  directory again. A worker that was silent for `fleet.lost_s` is given up, once and for all, before anything of it is
  fetched again; so its spool, should it come back, is not uploaded any more, and nothing is stored twice (`lost`).
- Nothing is fetched while the engines are away, but what was claimed before, and that only until its lease could end.
"""
