"""How things are written down: JSON, and the texts that several rooms read or write the same way.

- ``half_characters``: lone surrogates, refused at every way in, and replaced where they are shown
- ``json_pointer``: what a JSON pointer leads to, in a document of any origin
- ``json_schema``: JSON Schemas, compiled to validators
- ``json_value``: copying, comparing, ordering and walking JSON values
- ``rate``: rates as people write them, such as 60/minute
- ``retry_after``: how long an HTTP server asks us to wait
- ``secret_names``: names of variables and headers that usually hold a secret
- ``stranger_document``: JSON and YAML of strangers, read within bounds that hold while it reads
- ``strict_json``: reading JSON, and refusing what only Python's own reader takes for JSON
- ``times``: points in time as text
- ``unseen_text``: the characters that no reader can see, found, escaped or blanked
"""
