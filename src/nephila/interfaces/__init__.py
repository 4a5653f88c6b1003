"""The verbs of the crawler: one Protocol a file, its promises in the docstring.

Everything outside `model` and `urls` is somebody's way of keeping one of these promises; each has a contract suite in
`nephila.testing.contracts` that every adapter passes.
"""
