"""Every write fails once: a day of work on a disk that fails, and what is there afterwards.

- ``disk.c``, ``disk``: a disk that notes what is written to it, or has the n-th call fail
- ``files``: the files of a folder as a crash leaves them, made from such notes
- ``day``: what is done on that day, step by step, and what must be seen afterwards
- ``program``: the whole of it, in a process with that disk
"""
