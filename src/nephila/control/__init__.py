"""The control API: a crawl seen and operated over HTTP (C1, C2, O2).

Every endpoint is declared once (`endpoint`), with the types of what it takes and gives; routing, validation and the
OpenAPI description follow from the declaration, so that the description cannot drift from what is done. `shapes` are
those types. What is done lies below, in `node`: here are only the words of HTTP.

Nothing of this is imported by a crawl that is not served, but what notes changes that are ordered by a command
(`by_command`), which knows nothing of HTTP. `server` is where to begin.
"""
