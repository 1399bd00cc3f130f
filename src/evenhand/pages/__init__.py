"""Pages: templates, styles and charts, drawn from plain values.

The service and the offline page of a learner draw with the same parts. Nothing here knows either.
"""
