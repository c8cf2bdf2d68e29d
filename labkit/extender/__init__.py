"""The scheduler extender protocol, both sides (spec 04).

`wire` is what goes over the connection, `service` answers requests with labkit plugins, `server` speaks HTTP,
`client` is how our engine calls an extender, `checker` tries anybody's extender.
"""
