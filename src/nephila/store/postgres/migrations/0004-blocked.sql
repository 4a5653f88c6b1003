-- Domains that a person has blocked (T7): few among many, and looked for whenever the blocklist changes.

CREATE INDEX domains_blocked ON domains (domain) WHERE blocked;
