"""Module ids as OpenAI function names: `image.resize` and `image-resize`."""


class ModuleIDNormalizer:
    """A bijection, because a module id never contains a hyphen."""

    def normalize(self, module_id: str) -> str:
        if "-" in module_id:
            raise ValueError(f"Module id {module_id!r} contains a hyphen, which stands for a dot in tool names")
        return module_id.replace(".", "-")

    def denormalize(self, tool_name: str) -> str:
        return tool_name.replace("-", ".")
