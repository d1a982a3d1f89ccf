"""`python -m e2e.raising_server`: modules that raise whatever is named, over stdio."""

from apcore_mcp import serve
from raised import raising_registry

if __name__ == "__main__":
    serve(raising_registry())
