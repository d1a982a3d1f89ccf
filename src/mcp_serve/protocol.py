"""Words of the protocol for those who answer before the SDK is loaded; a test holds them to the SDK's own."""

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
"""The one version of the older era on the lane: the answers of those before it have other fields."""
STATELESS = frozenset((MODERN,))
"""The versions in which each request stands for itself."""
HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", LEGACY)
"""Those that open a session; the first is that of a client which names none."""
PROTOCOL_VERSION_META_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO_META_KEY = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES_META_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_INFO_META_KEY = "io.modelcontextprotocol/serverInfo"
INTERNAL_ERROR = -32603
REQUEST_CANCELLED = -32800
