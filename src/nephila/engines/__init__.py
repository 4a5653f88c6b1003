"""Connections to the servers of a fleet: what the stages that keep their state there share."""
