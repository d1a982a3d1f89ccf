"""Every requirement of the five specifications, by id.

Ids of the SRS are its own. The scenarios of the other documents carry ids of ours: the document's area and number,
then the place of the scenario in it.
"""

from dataclasses import dataclass

FINISHED = {"bridge", "pool", "tree"}
"""Areas whose every requirement must have a test."""


@dataclass(frozen=True, kw_only=True)
class Requirement:
    id: str
    title: str
    area: str
    note: str = ""
    is_proved_here: bool = True


@dataclass(frozen=True, kw_only=True)
class Document:
    """One specification: its number, its name, and the area it belongs to."""

    number: str
    name: str
    area: str
    titles: dict[str, str]

    @property
    def requirements(self) -> list[Requirement]:
        return [
            Requirement(
                id=id,
                title=title,
                area=self.area,
                note=NOT_PROVED_HERE.get(id, NOTES.get(id, "")),
                is_proved_here=id not in NOT_PROVED_HERE,
            )
            for id, title in self.titles.items()
        ]


BRIDGE = {
    "FR-SCHEMA-001": "Convert ModuleDescriptor input_schema to MCP inputSchema",
    "FR-SCHEMA-002": "Inline $defs/$ref references in input_schema",
    "FR-SCHEMA-003": 'Ensure root schema type is "object"',
    "FR-SCHEMA-004": "Convert ModuleDescriptor input_schema to OpenAI parameters",
    "FR-SCHEMA-005": "Convert output_schema for structured MCP responses",
    "FR-SCHEMA-006": "Handle all JSON Schema types in conversion",
    "FR-ANNOT-001": "Map destructive annotation to MCP destructiveHint",
    "FR-ANNOT-002": "Map readonly annotation to MCP readOnlyHint",
    "FR-ANNOT-003": "Map idempotent annotation to MCP idempotentHint",
    "FR-ANNOT-004": "Map open_world annotation to MCP openWorldHint",
    "FR-ANNOT-005": "Default MCP annotations when ModuleAnnotations is None",
    "FR-ANNOT-006": "Preserve requires_approval for MCP clients",
    "FR-ANNOT-007": "Generate parseable annotation suffix for OpenAI descriptions",
    "FR-EXEC-001": "Route MCP tool call to Executor.call_async",
    "FR-EXEC-002": "Serialize module output as JSON text content",
    "FR-EXEC-003": "Preserve full Executor pipeline for MCP-originated calls",
    "FR-EXEC-004": "Support both sync and async module execute methods",
    "FR-EXEC-005": "Accept pre-configured Executor instance",
    "FR-EXEC-006": "Accept pre-configured Executor in to_openai_tools",
    "FR-EXEC-007": "ExecutionRouter never propagates exceptions",
    "FR-ERROR-001": "Map ModuleNotFoundError to MCP error response",
    "FR-ERROR-002": "Map SchemaValidationError to MCP error with field details",
    "FR-ERROR-003": "Map ACLDeniedError to MCP error without sensitive data",
    "FR-ERROR-004": "Map ModuleTimeoutError to MCP error with duration",
    "FR-ERROR-005": "Map InvalidInputError to MCP error",
    "FR-ERROR-006": "Map CallDepthExceededError to MCP error",
    "FR-ERROR-007": "Map CircularCallError to MCP error",
    "FR-ERROR-008": "Map CallFrequencyExceededError to MCP error",
    "FR-ERROR-009": "Map unexpected exceptions to sanitized MCP error",
    "FR-ERROR-010": "Map unrecognized ModuleError subclasses to MCP error",
    "FR-ERROR-011": "All MCP error responses set isError=True",
    "FR-SERVER-001": "serve() launches MCP Server with stdio transport by default",
    "FR-SERVER-002": "serve() launches MCP Server with Streamable HTTP transport",
    "FR-SERVER-003": "serve() launches MCP Server with SSE transport",
    "FR-SERVER-004": "serve() configures server name and version",
    "FR-SERVER-005": "serve() blocks until server shutdown",
    "FR-SERVER-006": "serve() with empty registry starts server with zero tools",
    "FR-SERVER-007": "serve() validates transport parameter",
    "FR-SERVER-008": "serve() validates tags parameter",
    "FR-SERVER-009": "serve() validates prefix parameter",
    "FR-SERVER-010": "serve() configures log level",
    "FR-SERVER-011": "MCP Server registers tools from all registry modules",
    "FR-TRANSPORT-001": "stdio transport reads from stdin and writes to stdout",
    "FR-TRANSPORT-002": "stdio transport handles graceful shutdown on parent exit",
    "FR-TRANSPORT-003": "Streamable HTTP transport binds to configurable host and port",
    "FR-TRANSPORT-004": "SSE transport marked as deprecated",
    "FR-TRANSPORT-005": "host and port parameters ignored for stdio transport",
    "FR-OPENAI-001": "to_openai_tools() returns list of OpenAI tool definition dicts",
    "FR-OPENAI-002": "Normalize module IDs for OpenAI function name compatibility",
    "FR-OPENAI-003": "Apply OpenAI strict mode to tool definitions",
    "FR-OPENAI-004": "Embed annotations in OpenAI tool descriptions",
    "FR-OPENAI-005": "to_openai_tools() has zero dependency on openai package",
    "FR-OPENAI-006": "to_openai_tools() with tag filtering",
    "FR-OPENAI-007": "to_openai_tools() with prefix filtering",
    "FR-CLI-001": "python -m apcore_mcp starts MCP server",
    "FR-CLI-002": "--extensions-dir flag specifies extensions directory",
    "FR-CLI-003": "--transport flag selects transport protocol",
    "FR-CLI-004": "--host and --port flags configure network transports",
    "FR-CLI-005": "--name and --version flags configure server identity",
    "FR-CLI-006": "--log-level flag configures logging verbosity",
    "FR-CLI-007": "--help flag displays usage information",
    "FR-CLI-008": "CLI exit codes",
    "FR-DYNAMIC-001": "Reflect new module registration in MCP tool list",
    "FR-DYNAMIC-002": "Reflect module unregistration in MCP tool list",
    "FR-DYNAMIC-003": "Send MCP tool list changed notification",
    "FR-DYNAMIC-004": "Thread-safe tool list updates",
    "FR-LOG-001": "Log tool count and transport on server startup",
    "FR-LOG-002": "Log each tool call at DEBUG level",
    "FR-LOG-003": "Log tool call errors at ERROR level",
    "FR-LOG-004": "Use apcore_mcp logger namespace",
    "FR-LOG-005": "Log verbosity controllable via standard Python logging",
    "FR-FILTER-001": "Filter MCP tools by tags in serve()",
    "FR-FILTER-002": "Filter MCP tools by prefix in serve()",
    "FR-FILTER-003": "Combine tag and prefix filters",
    "FR-HEALTH-001": "Expose /health endpoint on HTTP transports",
    "FR-HEALTH-002": "Health endpoint requires no authentication",
    "FR-RESOURCE-001": "Expose module documentation as MCP Resources",
    "FR-RESOURCE-002": "Modules without documentation do not generate resources",
    "FR-STREAM-001": "Streaming tool execution via notifications/progress",
    "FR-EXT-001": "report_progress() sends MCP progress notifications",
    "FR-EXT-002": "elicit() solicits user input via MCP elicitation",
    "FR-EXT-003": "MCP_PROGRESS_KEY and MCP_ELICIT_KEY constants",
    "FR-EXPLORER-001": "Serve Explorer UI when explorer=True",
    "FR-EXPLORER-002": "JSON tool list endpoint",
    "FR-EXPLORER-003": "JSON tool detail endpoint",
    "FR-EXPLORER-004": "Tool execution endpoint with allow_execute guard",
    "FR-EXPLORER-005": "Self-contained HTML asset with no external dependencies",
    "FR-EXPLORER-006": "Configurable explorer_prefix parameter",
    "NFR-PERF-001": "Schema conversion time for 100 modules",
    "NFR-PERF-002": "Tool call routing overhead",
    "NFR-PERF-003": "Memory overhead for 100 tools",
    "NFR-PERF-004": "Concurrent HTTP connection handling",
    "NFR-SEC-001": "ACL enforcement delegated to apcore Executor",
    "NFR-SEC-002": "Error responses do not leak sensitive data",
    "NFR-SEC-003": "No sensitive data in MCP tool definitions",
    "NFR-REL-001": "Graceful shutdown on SIGINT/SIGTERM",
    "NFR-REL-002": "Single module failure does not prevent server start",
    "NFR-REL-003": "Thread-safe tool list access",
    "NFR-MAINT-001": "Core logic size limit",
    "NFR-MAINT-002": "Test coverage target",
    "NFR-MAINT-003": "Full type annotations on public APIs",
    "NFR-MAINT-004": "Logging standards",
    "NFR-COMPAT-001": "Python version compatibility",
    "NFR-COMPAT-002": "apcore-python version compatibility",
    "NFR-COMPAT-003": "MCP SDK version compatibility",
    "NFR-COMPAT-004": "MCP client compatibility",
    "NFR-PORT-001": "OS compatibility",
    "NFR-PORT-002": "No platform-specific dependencies",
}

TREE_CORE = {
    "TREE-000-01": "Read-only tools",
    "TREE-000-02": "Mutation tools",
    "TREE-000-03": "Core read tools",
    "TREE-000-04": "Core mutate tools",
    "TREE-000-05": "Included/Excluded properties",
    "TREE-000-06": "Depth and pagination",
    "TREE-000-07": "Read-only mode",
    "TREE-000-08": "Role-based permissions",
    "TREE-000-09": "Guard internal properties on self-payload nodes",
    "TREE-000-10": "Version tokens required for mutations",
    "TREE-000-11": "Idempotency keys",
    "TREE-000-12": "Per-agent rate limit",
    "TREE-000-13": "Batch size limits",
    "TREE-000-14": "Audit record created for mutations",
    "TREE-000-15": "Standard error codes",
    "TREE-000-16": "In-process API availability",
}

TREE_WHOLE = {
    "TREE-001-01": "Read tree structure",
    "TREE-001-02": "Search and navigation",
    "TREE-001-03": "Expand and collapse operations",
    "TREE-001-04": "Mutate tree data",
    "TREE-001-05": "Read-only mode enforcement",
    "TREE-001-06": "Property update guards",
    "TREE-001-07": "Rate limiting",
    "TREE-001-08": "Batch size limits",
    "TREE-001-09": "Version token validation",
    "TREE-001-10": "Idempotency key handling",
    "TREE-001-11": "Agent action logging",
    "TREE-001-12": "Error tracking",
    "TREE-001-13": "Read-only tools",
    "TREE-001-14": "Mutation tools",
    "TREE-001-15": "Core read tools",
    "TREE-001-16": "Core mutate tools",
    "TREE-001-17": "Included/Excluded properties",
    "TREE-001-18": "Depth and pagination",
    "TREE-001-19": "Read-only mode",
    "TREE-001-20": "Role-based permissions",
    "TREE-001-21": "Guard internal properties on self-payload nodes",
    "TREE-001-22": "Version tokens required for mutations",
    "TREE-001-23": "Idempotency keys",
    "TREE-001-24": "Per-agent rate limit",
    "TREE-001-25": "Batch size limits",
    "TREE-001-26": "Audit record created for mutations",
    "TREE-001-27": "Standard error codes",
    "TREE-001-28": "In-process API availability",
    "TREE-001-29": "get_path returns nodeIds and names",
    "TREE-001-30": "get_subtree respects depth and filters",
    "TREE-001-31": "get_common_ancestor returns nearest ancestor",
    "TREE-001-32": "search_advanced supports AND/OR and ranges",
    "TREE-001-33": "select_nodes parses simple expressions",
    "TREE-001-34": "copy_subtree duplicates or references children",
    "TREE-001-35": "clone_node duplicates a single node",
    "TREE-001-36": "move_before/move_after adjust sibling order",
    "TREE-001-37": "sort_children applies stable ordering",
    "TREE-001-38": "update_payload patches multiple fields",
    "TREE-001-39": "update_nodes applies non-atomic bulk changes",
    "TREE-001-40": "set_expansion_recursive with depth",
    "TREE-001-41": "set_filters persists filters",
    "TREE-001-42": "tag and query by tag",
    "TREE-001-43": "bookmark and list/remove bookmarks",
    "TREE-001-44": "validate_tree checks structure",
    "TREE-001-45": "lint_payload checks payload formatting",
    "TREE-001-46": "snapshot_create/list/restore",
    "TREE-001-47": "snapshot_diff and diff_subtree",
    "TREE-001-48": "export_subtree serializes subtree",
    "TREE-001-49": "import_merge supports strategies",
}

POOL = {
    "POOL-002-01": "Tool pool initialization",
    "POOL-002-02": "Tool pool cache invalidation",
    "POOL-002-03": "Exact tool name matching",
    "POOL-002-04": "Glob pattern matching",
    "POOL-002-05": "Wildcard access",
    "POOL-002-06": "Tool not found in pool",
    "POOL-002-07": "Default sub-agent denied tools",
    "POOL-002-08": "Opt-in to delegation",
    "POOL-002-09": "Max depth enforcement",
    "POOL-002-10": "LLM cannot access unresolved tools",
    "POOL-002-11": "Glob resolution at build time",
}

REQUEST = {
    "CALL-003-01": "Assemble tools for agent",
    "CALL-003-02": "Include built-in tools",
    "CALL-003-03": "Exclude unvalidated MCP tools",
    "CALL-003-04": "Masked MCP tool omitted",
    "CALL-003-05": "Block unapproved mutating call",
    "CALL-003-06": "Execute tool with scoped secret",
    "CALL-003-07": "Tool error event",
}

_AS_PYTHON = "The document speaks of a Go server and its workers; read as Python."

NOTES = {
    "NFR-COMPAT-001": "Python 3.11 and above: every apcore release on PyPI requires 3.11.",
    "NFR-COMPAT-002": "apcore 0.31 and above: plain JSON Schemas hold (0.28), watched modules keep their ids (0.31).",
    "NFR-COMPAT-003": "mcp 2.x: it serves both protocol eras; the limit below 2.0 predates it.",
    "FR-ERROR-009": "apcore wraps a module's exception in ModuleExecuteError; that wrapper counts as unexpected too.",
    "FR-EXEC-003": "apcore runs eleven steps today, and middleware before input validation; none is skipped.",
    "NFR-REL-003": "A table that is looked at and changed under one lock; entries are built outside of it.",
    **dict.fromkeys((*POOL, *REQUEST), _AS_PYTHON),
}

NOT_PROVED_HERE = {
    "NFR-PERF-001": "The time is measured by `make bench`; the tests hold only what it comes from.",
    "NFR-PERF-002": "The time is measured by `make bench`; the tests hold only what it comes from.",
    "NFR-MAINT-002": "CI measures the coverage and fails below 90 %; the test holds only that it is told to.",
    "NFR-COMPAT-004": "Nobody tried a desktop client by hand. Its kind of configuration file, the SDKs, FastMCP, the "
    "Inspector and the conformance suite are run.",
    "NFR-PORT-001": "CI runs on Linux; the source is type-checked for Windows and macOS too (`make types`), and the "
    "tests hold what would keep it from starting there.",
}
"""Requirements whose tests hold something, but not what the requirement says; and where the proof is, if anywhere."""

DOCUMENTS = (
    Document(number="000", name="Agent interface to trees, first part", area="tree", titles=TREE_CORE),
    Document(number="001", name="Agent interface to trees", area="tree", titles=TREE_WHOLE),
    Document(number="002", name="Project-level tool pool", area="pool", titles=POOL),
    Document(number="003", name="Per-request tool registry", area="pool", titles=REQUEST),
    Document(number="004", name="apcore-mcp", area="bridge", titles=BRIDGE),
)

REQUIREMENTS = {requirement.id: requirement for document in DOCUMENTS for requirement in document.requirements}
