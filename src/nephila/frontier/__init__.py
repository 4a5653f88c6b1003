"""What to fetch next: the life of a URL, the order of hosts, the scope of a crawl, and the engines that keep them."""
