"""`files.empty_trash`: destroys things, so it wants approval. The trash is pretend and lives in memory."""

from typing import Any

from apcore import ModuleAnnotations
from pydantic import BaseModel, Field


class EmptyTrashInput(BaseModel):
    older_than_days: int = Field(0, description="Keep what was thrown away more recently", ge=0, le=3650)


class EmptyTrashOutput(BaseModel):
    removed: list[str] = Field(description="The files that are gone now")
    kept: list[str] = Field(description="The files still in the trash")
    freed_bytes: int


class EmptyTrash:
    description = "Empty the trash for good. The trash is pretend: no file on this computer is touched."
    documentation = """
Marked `destructive` and `requires_approval`. The Explorer asks before it runs, and so do most MCP clients.
To have the *server* ask, give apcore an approval handler: see `examples/governed.py`.

Restart the server to fill the trash again.
"""
    tags = ["files", "danger"]
    annotations = ModuleAnnotations(destructive=True, requires_approval=True, open_world=False)
    input_schema = EmptyTrashInput
    output_schema = EmptyTrashOutput

    def __init__(self) -> None:
        self.trash = {
            "holiday-final.mp4": {"days": 400, "bytes": 734_003_200},
            "holiday-final-2.mp4": {"days": 399, "bytes": 734_003_712},
            "thesis-old.docx": {"days": 31, "bytes": 1_204_224},
            "screenshot 17.png": {"days": 2, "bytes": 482_311},
        }

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        limit = EmptyTrashInput.model_validate(inputs).older_than_days
        removed = {name: file for name, file in self.trash.items() if file["days"] >= limit}
        self.trash = {name: file for name, file in self.trash.items() if name not in removed}
        freed = sum(file["bytes"] for file in removed.values())
        return {"removed": list(removed), "kept": list(self.trash), "freed_bytes": freed}
