"""What a project keeps besides its workspace: pins, approvals, tokens and logins.

- ``pins``: what a pin says, and the protocol that keeps pins
- ``approvals``: what an approval says, and the protocol that keeps approvals
- ``tokens``: how a token is kept, and the protocol that keeps tokens
- ``logins``: our logins to servers, and the protocol that keeps them
- ``handoffs``: answers on their way to the replica that asked, and the protocol that takes them there
- ``deeds``: what people did to the others, on its way into the audit log
- ``memory``: all of them in a process that may forget
- ``sqlite``: all of them in a file that several processes share
- ``postgres``: all of them in a database that several machines share; imported where it is used
- ``unavailable``: why the state cannot be used now
"""

from toolgrove.store.state.approvals import (
    Approval,
    ApprovalKey,
    ApprovalRequest,
    Approvals,
    ApprovalState,
    ApprovalTable,
    Lasting,
    Moment,
)
from toolgrove.store.state.deeds import Deed, Deeds
from toolgrove.store.state.handoffs import HandoffLost, Handoffs
from toolgrove.store.state.logins import Login, Logins
from toolgrove.store.state.memory import MemoryApprovals, MemoryDeeds, MemoryLogins, MemoryPins, MemoryTokens
from toolgrove.store.state.pins import FIRST_USE, Pin, Pins, PinState
from toolgrove.store.state.sqlite import (
    STATE_FILE,
    STATE_VERSION,
    SqliteApprovals,
    SqliteDeeds,
    SqliteLogins,
    SqlitePins,
    SqliteTokens,
    StateFile,
    StateTooNew,
    project_of,
)
from toolgrove.store.state.tokens import OPERATOR, Tokens, hashed, token_id
from toolgrove.store.state.unavailable import StateAway, StateBusy, StateUnavailable

__all__ = [
    "FIRST_USE",
    "OPERATOR",
    "STATE_FILE",
    "STATE_VERSION",
    "Approval",
    "ApprovalKey",
    "ApprovalRequest",
    "ApprovalState",
    "ApprovalTable",
    "Approvals",
    "Deed",
    "Deeds",
    "HandoffLost",
    "Handoffs",
    "Lasting",
    "Login",
    "Logins",
    "MemoryApprovals",
    "MemoryDeeds",
    "MemoryLogins",
    "MemoryPins",
    "MemoryTokens",
    "Moment",
    "Pin",
    "PinState",
    "Pins",
    "SqliteApprovals",
    "SqliteDeeds",
    "SqliteLogins",
    "SqlitePins",
    "SqliteTokens",
    "StateAway",
    "StateBusy",
    "StateFile",
    "StateTooNew",
    "StateUnavailable",
    "Tokens",
    "hashed",
    "project_of",
    "token_id",
]
