"""Every failure an agent can meet; each says what to do next.

GroveError
├── InvalidArgument    invalid_argument   the request is wrong: fix it and retry
│   ├── SchemaMismatch, NotJson, UnreadableArguments   the arguments themselves
│   ├── PayloadMismatch, UnknownType, GuardedProperty, UnwritablePath
│   ├── BatchTooLarge, BadPageToken, KeyReused
│   └── BadQuery                          a selection query, with a caret line
├── NotFound           not_found          nothing has that name
│   ├── NodeNotFound, ToolNotFound, ResourceNotFound, PromptNotFound, AgentNotFound, Unnamed
│   └── ApprovalNotFound, PinNotFound
├── Forbidden          forbidden          stop: this agent may not
│   ├── ApprovalRequired                  a person must agree first, then the same call goes through
│   ├── ApprovalRejected                  a person said no
│   ├── ApprovalUnavailable               there is no one to ask, so nothing is sent
│   ├── InboxFull                         the agent has as many calls waiting as it may
│   ├── OwnApproval                       an agent must not decide about its own call
│   ├── OutsideWriteRoot                  a change reaches beyond the subtree that is open
│   ├── RightsMissing                     our login to the tool's server lacks a scope; only the operator can get it
│   ├── SecretOutOfScope                  the secret names the tools that may use it, and this is none of them
│   └── SpawnBudgetSpent                  a run has started as many sub-agents as it may
├── Conflict           conflict           read again, then retry with the latest version
│   ├── StaleVersion
│   ├── VersionLost                       the state that a version names is not in the tree's history
│   ├── OutcomeUnknown                    the same call was cut off by a crash, and may have run
│   ├── AlreadyDecided                    another decision about the approval stands
│   ├── NotRevocable                      there is no open approval to take back
│   ├── ApprovalTakenBack                 another replica gave the call's approval back before it was kept
│   ├── EffectChanged                     the call would change something other than what was approved
│   └── PinMoved                          the definition to accept is not the one that is there now
├── RateLimited        rate_limited       wait retryAfter seconds
│   └── ShareSpent                        the agent already uses its whole share of an upstream
├── LimitUnknown       rate_limited       calls cannot be counted now, so nothing is changed
├── TooManyRuns        rate_limited       as many runs with a model are under way as there may be
├── Internal           internal           our fault; the call id leads to the log
├── CutShort           internal           the gateway ended; says whether the call may have run
├── NotKept            internal           the store refused, so nothing happened; wait retryAfter seconds
├── StoreDiverged      internal           the store was set back; it is read again in a moment
├── SecretUnset        internal           the operator has not set a secret that the tool needs
├── RunnerMissing      internal           the operator has not said whose model drives agents
├── RunFailed          internal           an agent's run ended without an answer
├── UpstreamFailed     internal           the tool's own server failed, hung or answered nonsense
└── ToolError          internal           the tool itself says that it failed: its own result is the answer

- ``agents``: tools and agents that do not exist, may not be started, or did not finish
- ``approvals``: what stands between a call and the person who must agree
- ``arguments``: what is wrong with what a call was given
- ``keeping``: a store that refuses what a call would leave behind
- ``kinds``: the base and the kinds of failure, one for each code
- ``stopping``: calls that the end of the gateway cut off
- ``tree``: what the workspace refuses, or does not have
- ``upstreams``: servers of tools, their secrets and their pins
- ``wording``: cutting long texts, and guessing the word that was meant
"""

from __future__ import annotations

from toolgrove.errors.agents import (
    AgentNotFound,
    PartNotGranted,
    RunFailed,
    RunnerMissing,
    SpawnBudgetSpent,
    ToolNotFound,
    TooManyRuns,
)
from toolgrove.errors.approvals import (
    AlreadyDecided,
    ApprovalNotFound,
    ApprovalRejected,
    ApprovalRequired,
    ApprovalTakenBack,
    ApprovalUnavailable,
    EffectChanged,
    InboxFull,
    NotRevocable,
    OwnApproval,
)
from toolgrove.errors.arguments import (
    BadPageToken,
    BatchTooLarge,
    KeyReused,
    NotJson,
    SchemaMismatch,
    UnreadableArguments,
)
from toolgrove.errors.keeping import LimitUnknown, NotKept, StoreDiverged
from toolgrove.errors.kinds import Conflict, Forbidden, GroveError, Internal, InvalidArgument, NotFound, RateLimited
from toolgrove.errors.stopping import CutShort
from toolgrove.errors.tree import (
    BadQuery,
    GuardedProperty,
    NodeNotFound,
    OutsideWriteRoot,
    ParentGone,
    PayloadMismatch,
    StaleVersion,
    UnknownType,
    Unnamed,
    UnwritablePath,
    VersionLost,
)
from toolgrove.errors.upstreams import (
    OutcomeUnknown,
    PinMoved,
    PinNotFound,
    PromptNotFound,
    ResourceNotFound,
    RightsMissing,
    SecretOutOfScope,
    SecretUnset,
    ShareSpent,
    ToolError,
    UpstreamFailed,
)
from toolgrove.errors.wording import MESSAGE, NAME, brief, closest

__all__ = [
    "MESSAGE",
    "NAME",
    "AgentNotFound",
    "AlreadyDecided",
    "ApprovalNotFound",
    "ApprovalRejected",
    "ApprovalRequired",
    "ApprovalTakenBack",
    "ApprovalUnavailable",
    "BadPageToken",
    "BadQuery",
    "BatchTooLarge",
    "Conflict",
    "CutShort",
    "EffectChanged",
    "Forbidden",
    "GroveError",
    "GuardedProperty",
    "InboxFull",
    "Internal",
    "InvalidArgument",
    "KeyReused",
    "LimitUnknown",
    "NodeNotFound",
    "NotFound",
    "NotJson",
    "NotKept",
    "NotRevocable",
    "OutcomeUnknown",
    "OutsideWriteRoot",
    "OwnApproval",
    "ParentGone",
    "PartNotGranted",
    "PayloadMismatch",
    "PinMoved",
    "PinNotFound",
    "PromptNotFound",
    "RateLimited",
    "ResourceNotFound",
    "RightsMissing",
    "RunFailed",
    "RunnerMissing",
    "SchemaMismatch",
    "SecretOutOfScope",
    "SecretUnset",
    "ShareSpent",
    "SpawnBudgetSpent",
    "StaleVersion",
    "StoreDiverged",
    "TooManyRuns",
    "ToolError",
    "ToolNotFound",
    "UnknownType",
    "Unnamed",
    "UnreadableArguments",
    "UnwritablePath",
    "UpstreamFailed",
    "VersionLost",
    "brief",
    "closest",
]
