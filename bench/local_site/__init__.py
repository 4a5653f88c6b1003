"""A site on loopback that every crawler can be sent to: made-up addresses, real pages, exact counts.

`templates` turns real pages into moulds, `pages` casts as many different ones as are wanted, `server` hands them out in
a process of its own, `running` starts that process and asks it what it served, `measured` runs a crawler against it and
tells what that took.
"""
