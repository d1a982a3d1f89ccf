"""`python -m bench.replicas [--quick] [--only …] [--json FILE]`: a project on PostgreSQL, alone and as two replicas.

- ``fleet``: a durable PostgreSQL and real `toolgrove serve` processes on it
- ``stores``: one replica on PostgreSQL beside SQLite and memory
- ``reads``: what a read costs with one replica and with two
- ``races``: changes that were run again, with sixteen writers at two replicas
- ``lag``: how long a change at one replica takes to show at the other, and in a console there
- ``takeover``: how long the other takes to take over when one is killed
- ``holds``: what one replica holds
- ``costs``: what a change costs a replica that follows, and the database
- ``simulation``: ten and a hundred replicas, from those costs
"""

import sys

from bench.hop import ROOT

sys.path.append(str(ROOT / "tests"))  # the services are those of the tests
