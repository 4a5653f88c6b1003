"""Other crawlers, each as a program that is given seeds, a number of pages and a folder; and how they are called."""
