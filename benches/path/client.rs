//! The gRPC client: opens streams, and takes from their frames when tokens came and how old they were.

use redrive::proto::{
    Conversation, GenerateRequest, GenerateResponse, Message, Part, Role, Start, delta::Content,
    generate_request, generate_response::Frame, generation_service_client::GenerationServiceClient,
    part, start::Input,
};
use tokio_stream::StreamExt as _;
use tonic::{
    Streaming,
    transport::{Channel, Endpoint},
};

use super::stamp;

/// A connection to the sidecar or to the floor.
pub async fn connect(port: u16) -> Channel {
    Endpoint::from_shared(format!("http://127.0.0.1:{port}"))
        .unwrap()
        .tcp_nodelay(true)
        .connect()
        .await
        .unwrap()
}

/// Opens a stream. As an application that may claim effects or cancel, the client keeps its side open.
pub async fn open(channel: &Channel, route: &str, model: &str) -> Streaming<GenerateResponse> {
    let message = Message {
        role: Role::User.into(),
        parts: vec![Part {
            part: Some(part::Part::Text("Tell me a story.".into())),
        }],
    };
    let start = Start {
        route: route.into(),
        model: model.into(),
        input: Some(Input::Conversation(Conversation {
            messages: vec![message],
            ..Conversation::default()
        })),
        ..Start::default()
    };
    let first = GenerateRequest {
        frame: Some(generate_request::Frame::Start(start)),
    };
    let requests = tokio_stream::once(first).chain(tokio_stream::pending());
    let mut client = GenerationServiceClient::new(channel.clone());
    client.generate(requests).await.unwrap().into_inner()
}

/// What a frame brought.
pub enum Seen {
    /// Tokens of this attempt, each with its age in microseconds.
    Tokens(u32, Vec<u32>),
    /// What the client had is void.
    Reset,
    /// It has to do with something else.
    Other,
}

/// Reads a frame.
pub fn see(response: &GenerateResponse) -> Seen {
    match &response.frame {
        Some(Frame::Delta(delta)) => {
            let now = stamp::now();
            let text = match &delta.content {
                Some(Content::Text(text)) => text.as_bytes(),
                Some(Content::NativeEvent(line)) => stamped(line),
                _ => &[],
            };
            let tokens = text.chunks_exact(stamp::TOKEN_BYTES);
            let ages = tokens.map(|token| stamp::age_us(token, now)).collect();
            Seen::Tokens(delta.attempt, ages)
        }
        Some(Frame::PreviewReset(_)) => Seen::Reset,
        Some(Frame::Failed(failed)) => panic!("the generation failed: {failed:?}"),
        _ => Seen::Other,
    }
}

/// The token in a line that the floor copied; nothing in the lines that end the stream.
fn stamped(line: &[u8]) -> &[u8] {
    const BEFORE: &[u8] = b"\"content\":\"";
    match memchr::memmem::find(line, BEFORE) {
        Some(at) => &line[at + BEFORE.len()..][..stamp::TOKEN_BYTES],
        None => &[],
    }
}
