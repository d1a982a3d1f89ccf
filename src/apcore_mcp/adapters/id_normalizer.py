"""Module ids as OpenAI function names: `image.resize` and `image-resize`."""

import re

_MODULE_ID = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*", re.ASCII)


class ModuleIDNormalizer:
    """A bijection, because a module id never contains a hyphen."""

    def normalize(self, module_id: str) -> str:
        """The function name of a module."""
        if "-" in module_id:
            raise ValueError(f"Module id {module_id!r} contains a hyphen, which stands for a dot in tool names")
        return module_id.replace(".", "-")

    def denormalize(self, tool_name: str) -> str:
        """The module id behind a function name."""
        return tool_name.replace("-", ".")

    def try_denormalize(self, tool_name: str) -> str | None:
        """The module id behind a function name, or None if no module can have that id; for names of unknown origin."""
        module_id = self.denormalize(tool_name)
        return module_id if _MODULE_ID.fullmatch(module_id) else None
