from apcore import Registry
from pydantic import BaseModel

from apcore_mcp import serve


class Greeting(BaseModel):
    name: str


class Reply(BaseModel):
    text: str


class Greet:
    description = "Greet somebody by name"
    input_schema, output_schema = Greeting, Reply

    def execute(self, inputs, context):
        return {"text": f"Hello, {inputs['name']}!"}


registry = Registry()
registry.register("greet", Greet())
if __name__ == "__main__":
    serve(registry)
