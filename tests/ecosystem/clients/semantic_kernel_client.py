from semantic_kernel import Kernel
from semantic_kernel.connectors.mcp import MCPStreamableHttpPlugin
from visit import HEADERS, URL, run, visit


async def main() -> None:
    async with MCPStreamableHttpPlugin(name="grove", url=URL, headers=HEADERS, load_prompts=False) as plugin:
        functions = Kernel().add_plugin(plugin).functions

        async def call(name, arguments):
            return await functions[name].invoke(Kernel(), **arguments)

        await visit(functions, call)


run(main())
