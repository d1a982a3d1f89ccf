"""Sessions of the older era, as far as the lane needs to know them."""

import mcp_types as types
from mcp.server.session import ServerSession

from mcp_serve.protocol import LEGACY
from mcp_serve.under_way import UnderWay

_ELICITATION = types.ClientCapabilities(elicitation=types.ElicitationCapability())


class OpenSession:
    """One that its client opened: who it belongs to, what the client can do, and which requests are under way."""

    def __init__(self, session: ServerSession, owner: str | None) -> None:
        self.session = session
        self.owner = owner
        self.under_way = UnderWay()

    @property
    def is_plain(self) -> bool:
        """Whether it speaks the one version that the lane knows; the client may negotiate again."""
        return self.session.protocol_version == LEGACY

    @property
    def can_answer(self) -> bool:
        """Whether its user can be asked."""
        return self.session.check_client_capability(_ELICITATION)
