"""What stages stand on and share: connections to the servers of a fleet, and the disk of this machine."""
