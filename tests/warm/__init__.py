"""A warm Python: commands that start as `python …` does, without the seconds that its imports take.

command     what tests call: the warm spelling of a command, and a process whose signals go to the real one
server      has imported everything, and forks a child for each request
launcher    the executable: asks the server for a child, and lives and dies as that child does
"""
