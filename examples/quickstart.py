from apcore import Registry, module

from apcore_mcp import serve

registry = Registry()


@module(id="greet", registry=registry)
def greet(name: str, greeting: str = "Hello") -> str:
    """Greet somebody by name."""
    return f"{greeting}, {name}!"


if __name__ == "__main__":
    serve(registry)
