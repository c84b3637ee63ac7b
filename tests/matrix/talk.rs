//! What a provider says, in the words of each protocol.

use bytes::Bytes;
use redrive::proto::Protocol;
use serde_json::{Value, json};

use crate::support::{Script, sent};

/// A response under way: what was said, and what is open.
pub struct Talk {
    protocol: Protocol,
    script: Script,
    /// Sequence number of the next event (Responses).
    sequence: u64,
    /// Index of the next block (Anthropic, Responses).
    blocks: u64,
    open: Option<Open>,
    called: bool,
    /// Whether token counts are told.
    usage: bool,
}

/// The block that is open.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Reasoning,
    Text,
    Tool,
}

impl Talk {
    /// Nothing was said; the request was not even handed over.
    pub fn begin(protocol: Protocol) -> Talk {
        Talk {
            protocol,
            script: Script::default(),
            sequence: 0,
            blocks: 0,
            open: None,
            called: false,
            usage: true,
        }
    }

    /// The protocol's name for "any of them".
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// From here on nothing tells how many tokens there were.
    pub fn without_usage(mut self) -> Talk {
        self.usage = false;
        self
    }

    /// The head of an event stream and the events before any output.
    pub fn opened(mut self) -> Talk {
        self.script = sent().header("content-type", "text/event-stream").head(200);
        match self.protocol {
            Protocol::OpenaiChat => self.choice(json!({"role": "assistant", "content": ""}), None),
            Protocol::OpenaiResponses => self
                .response("response.created", "in_progress", json!({}))
                .response("response.in_progress", "in_progress", json!({})),
            _ => {
                let mut message = json!({"id": "msg_1", "type": "message", "role": "assistant",
                    "model": "m", "content": [], "stop_reason": null});
                if self.usage {
                    message["usage"] = json!({"input_tokens": 7, "output_tokens": 1});
                }
                self.event(json!({"type": "message_start", "message": message}))
            }
        }
    }

    pub fn reasoning(self, text: &str) -> Talk {
        match self.protocol {
            Protocol::OpenaiChat => self.choice(json!({"reasoning_content": text}), None),
            Protocol::OpenaiResponses => {
                let talk = self.block(Open::Reasoning);
                let at = talk.blocks - 1;
                talk.event(json!({"type": "response.reasoning_summary_text.delta",
                    "item_id": "item", "output_index": at, "summary_index": 0, "delta": text}))
            }
            _ => self
                .block(Open::Reasoning)
                .block_delta(json!({"type": "thinking_delta", "thinking": text})),
        }
    }

    pub fn text(self, text: &str) -> Talk {
        match self.protocol {
            Protocol::OpenaiChat => self.choice(json!({"content": text}), None),
            Protocol::OpenaiResponses => {
                let talk = self.block(Open::Text);
                let at = talk.blocks - 1;
                talk.event(json!({"type": "response.output_text.delta",
                    "item_id": "item", "output_index": at, "content_index": 0, "delta": text}))
            }
            _ => self
                .block(Open::Text)
                .block_delta(json!({"type": "text_delta", "text": text})),
        }
    }

    /// Arguments of the one tool call.
    pub fn arguments(mut self, fragment: &str) -> Talk {
        let first = !std::mem::replace(&mut self.called, true);
        match self.protocol {
            Protocol::OpenaiChat => {
                let mut call = json!({"index": 0, "function": {"arguments": fragment}});
                if first {
                    call["id"] = json!("call_1");
                    call["type"] = json!("function");
                    call["function"]["name"] = json!("save");
                }
                self.choice(json!({"tool_calls": [call]}), None)
            }
            Protocol::OpenaiResponses => {
                let talk = self.block(Open::Tool);
                let at = talk.blocks - 1;
                talk.event(json!({"type": "response.function_call_arguments.delta",
                    "item_id": "item", "output_index": at, "delta": fragment}))
            }
            _ => self
                .block(Open::Tool)
                .block_delta(json!({"type": "input_json_delta", "partial_json": fragment})),
        }
    }

    /// Completes what is open, so that a terminal may follow.
    pub fn whole(self) -> Talk {
        let talk = if self.called {
            self.arguments("1}")
        } else {
            self
        };
        if talk.open.is_some() || talk.called {
            talk
        } else {
            talk.text("Hello")
        }
    }

    /// The evidence that the response is complete, as far as an error may still follow it.
    pub fn finish(self) -> Talk {
        let usage = self.usage;
        match self.protocol {
            Protocol::OpenaiChat => {
                let reason = if self.called { "tool_calls" } else { "stop" };
                self.choice(json!({}), Some(reason))
            }
            Protocol::OpenaiResponses => {
                let counts = json!({"usage": {"input_tokens": 7, "output_tokens": 3}});
                let more = if usage { counts } else { json!({}) };
                self.response("response.completed", "completed", more)
            }
            _ => {
                let reason = if self.called { "tool_use" } else { "end_turn" };
                let mut delta = json!({"type": "message_delta", "delta": {"stop_reason": reason}});
                if usage {
                    delta["usage"] = json!({"output_tokens": 3});
                }
                self.block_end().event(delta)
            }
        }
    }

    /// What follows the finish of a healthy response.
    pub fn tail(self) -> Talk {
        let usage = self.usage;
        match self.protocol {
            Protocol::OpenaiChat if usage => self
                .event(json!({"id": "1", "model": "m", "choices": [],
                    "usage": {"prompt_tokens": 7, "completion_tokens": 3}}))
                .raw("data: [DONE]\n\n"),
            Protocol::OpenaiChat => self.raw("data: [DONE]\n\n"),
            Protocol::OpenaiResponses => self,
            _ => self.event(json!({"type": "message_stop"})),
        }
    }

    /// The rest of a healthy response.
    pub fn completed(self) -> Script {
        self.whole().finish().tail().script.end()
    }

    /// An error that says that the provider is overloaded.
    pub fn transient_error(self) -> Talk {
        match self.protocol {
            Protocol::OpenaiChat => self.event(json!({"error":
                {"message": "busy", "type": "server_error", "code": "server_is_overloaded"}})),
            Protocol::OpenaiResponses => self.event(json!({"type": "error", "error":
                {"message": "busy", "type": "server_error", "code": "server_is_overloaded"}})),
            _ => self.event(json!({"type": "error", "error":
                {"type": "overloaded_error", "message": "Overloaded"}})),
        }
    }

    /// An error with a code that is on no list.
    pub fn unknown_error(self) -> Talk {
        let error = json!({"message": "no", "type": "strange_error", "code": "strange"});
        match self.protocol {
            Protocol::OpenaiChat => self.event(json!({"error": error})),
            _ => self.event(json!({"type": "error", "error": error})),
        }
    }

    /// What the provider sends while it has nothing to say.
    pub fn ping(self) -> Talk {
        match self.protocol {
            Protocol::OpenaiChat => self.raw(": keepalive\n\n"),
            Protocol::OpenaiResponses => self.event(json!({"type": "keepalive"})),
            _ => self.event(json!({"type": "ping"})),
        }
    }

    /// Any bytes.
    pub fn raw(mut self, bytes: impl Into<Bytes>) -> Talk {
        self.script = self.script.data(bytes);
        self
    }

    pub fn wait(mut self, length: std::time::Duration) -> Talk {
        self.script = self.script.wait(length);
        self
    }

    /// What was said so far; the provider falls silent after it.
    pub fn script(self) -> Script {
        self.script
    }

    fn event(mut self, mut data: Value) -> Talk {
        let name = data["type"].as_str().map(|name| format!("event: {name}\n"));
        if self.protocol == Protocol::OpenaiResponses {
            data["sequence_number"] = json!(self.sequence);
            self.sequence += 1;
        }
        let name = match self.protocol {
            Protocol::OpenaiChat => String::new(),
            _ => name.unwrap_or_default(),
        };
        self.raw(format!("{name}data: {data}\n\n"))
    }

    fn choice(self, delta: Value, finish: Option<&str>) -> Talk {
        self.event(
            json!({"id": "1", "object": "chat.completion.chunk", "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}),
        )
    }

    fn response(self, kind: &str, status: &str, more: Value) -> Talk {
        let mut response = json!({"id": "resp_1", "object": "response", "model": "m",
            "status": status, "output": []});
        for (key, value) in more.as_object().unwrap() {
            response[key] = value.clone();
        }
        self.event(json!({"type": kind, "response": response}))
    }

    /// Opens a block of this kind, unless one is open.
    fn block(self, kind: Open) -> Talk {
        if self.open == Some(kind) {
            return self;
        }
        let mut talk = self.block_end();
        let at = talk.blocks;
        talk.blocks += 1;
        talk.open = Some(kind);
        if talk.protocol == Protocol::OpenaiResponses {
            let item = match kind {
                Open::Reasoning => json!({"type": "reasoning", "id": "item", "summary": []}),
                Open::Text => json!({"type": "message", "id": "item", "role": "assistant",
                    "content": []}),
                Open::Tool => json!({"type": "function_call", "id": "item", "call_id": "call_1",
                    "name": "save", "arguments": ""}),
            };
            return talk.event(
                json!({"type": "response.output_item.added", "output_index": at,
                "item": item}),
            );
        }
        let block = match kind {
            Open::Reasoning => json!({"type": "thinking", "thinking": ""}),
            Open::Text => json!({"type": "text", "text": ""}),
            Open::Tool => json!({"type": "tool_use", "id": "call_1", "name": "save", "input": {}}),
        };
        talk.event(json!({"type": "content_block_start", "index": at, "content_block": block}))
    }

    fn block_end(mut self) -> Talk {
        match self.open.take() {
            Some(_) if self.protocol == Protocol::AnthropicMessages => {
                let at = self.blocks - 1;
                self.event(json!({"type": "content_block_stop", "index": at}))
            }
            _ => self,
        }
    }

    fn block_delta(self, delta: Value) -> Talk {
        let at = self.blocks - 1;
        self.event(json!({"type": "content_block_delta", "index": at, "delta": delta}))
    }
}
