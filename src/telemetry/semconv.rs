//! Attribute, span and event names. One table, so that a change of the conventions is a change here.
//!
//! `rpc.*` and `http.*` follow the OpenTelemetry semantic conventions as of v1.44 (RPC as release
//! candidate, HTTP stable), `gen_ai.*` the GenAI conventions since they name the provider
//! `gen_ai.provider.name`. `redrive.*` is ours. Nothing here ever carries content, prompts, request
//! ids or credentials.

/// The instrumentation scope.
pub(super) const SCOPE: &str = "redrive";

pub(super) const RPC_SYSTEM_NAME: &str = "rpc.system.name";
pub(super) const RPC_METHOD: &str = "rpc.method";
pub(super) const RPC_STATUS_CODE: &str = "rpc.status_code";

pub(super) const GEN_AI_OPERATION_NAME: &str = "gen_ai.operation.name";
pub(super) const GEN_AI_PROVIDER_NAME: &str = "gen_ai.provider.name";
pub(super) const GEN_AI_REQUEST_MODEL: &str = "gen_ai.request.model";
pub(super) const GEN_AI_REQUEST_STREAM: &str = "gen_ai.request.stream";
pub(super) const GEN_AI_RESPONSE_MODEL: &str = "gen_ai.response.model";
pub(super) const GEN_AI_RESPONSE_FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub(super) const GEN_AI_TIME_TO_FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
pub(super) const GEN_AI_INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(super) const GEN_AI_OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";

pub(super) const HTTP_REQUEST_METHOD: &str = "http.request.method";
pub(super) const HTTP_RESPONSE_STATUS_CODE: &str = "http.response.status_code";
pub(super) const HTTP_REQUEST_RESEND_COUNT: &str = "http.request.resend_count";
pub(super) const SERVER_ADDRESS: &str = "server.address";
pub(super) const SERVER_PORT: &str = "server.port";
pub(super) const ERROR_TYPE: &str = "error.type";

pub(super) const ROUTE: &str = "redrive.route";
pub(super) const OUTCOME: &str = "redrive.outcome";
pub(super) const ATTEMPTS: &str = "redrive.attempts";
pub(super) const SENDS: &str = "redrive.sends";
pub(super) const VOID_OUTPUT_TOKENS: &str = "redrive.void.output_tokens";
pub(super) const STOPPED_BY: &str = "redrive.stopped_by";

pub(super) const ATTEMPT: &str = "redrive.attempt";
pub(super) const TARGET: &str = "redrive.target";
pub(super) const MODE: &str = "redrive.mode";
pub(super) const VERDICT: &str = "redrive.verdict";
pub(super) const EXECUTED: &str = "redrive.executed";

pub(super) const EVENT_WAIT: &str = "redrive.wait";
pub(super) const EVENT_STALL: &str = "redrive.stall";
pub(super) const EVENT_PREVIEW_RESET: &str = "redrive.preview_reset";
pub(super) const EVENT_COMMITTED: &str = "redrive.committed";
pub(super) const EVENT_GATE_REJECTED: &str = "redrive.gate_rejected";
pub(super) const GATE_REASON: &str = "redrive.gate.reason";
pub(super) const GATE_THEN: &str = "redrive.gate.then";
pub(super) const WAIT_REASON: &str = "redrive.wait.reason";
pub(super) const WAIT_BUDGET: &str = "redrive.wait.budget";
pub(super) const WAIT_EXPECTED: &str = "redrive.wait.expected_seconds";
pub(super) const STALL_TIMER: &str = "redrive.stall.timer";
pub(super) const STALL_LENGTH: &str = "redrive.stall.seconds";
