//! Clients that look at every token.

use std::time::Duration;

use redrive::proto::{
    Committed, Conversation, GenerateRequest, GenerateResponse, Message, Part, Role, Start,
    delta::Content, generate_request, generate_response::Frame,
    generation_service_client::GenerationServiceClient, part, start::Input,
};
use tokio::task::JoinSet;
use tokio_stream::StreamExt as _;
use tonic::{Streaming, transport::Channel};

use super::provider;

/// How old tokens were when their reader had them, in microseconds.
#[derive(Default)]
pub struct Ages(Vec<u64>);

impl Ages {
    pub fn percentile(&mut self, percent: usize) -> u64 {
        self.0.sort_unstable();
        self.0[self.0.len() * percent / 100]
    }
}

/// Opens `count` generations, spread over `channels`.
pub async fn open_all(
    channels: &[Channel],
    count: usize,
    tokens: usize,
    pace: Duration,
) -> Vec<Streaming<GenerateResponse>> {
    let mut opening = JoinSet::new();
    for number in 0..count {
        opening.spawn(open(
            channels[number % channels.len()].clone(),
            tokens,
            pace,
        ));
    }
    opening.join_all().await
}

/// Opens `count` generations and reads them all to their end.
pub async fn read_all(channels: &[Channel], count: usize, tokens: usize, pace: Duration) -> Ages {
    let streams = open_all(channels, count, tokens, pace).await;
    let mut all = Ages::default();
    for ages in read_each(streams, tokens).join_all().await {
        all.0.extend(ages.0);
    }
    assert_eq!(all.0.len(), count * tokens);
    all
}

/// Reads generations to their end, each in a task of its own.
pub fn read_each(streams: Vec<Streaming<GenerateResponse>>, tokens: usize) -> JoinSet<Ages> {
    streams
        .into_iter()
        .map(|stream| read(stream, tokens))
        .collect()
}

async fn open(channel: Channel, tokens: usize, pace: Duration) -> Streaming<GenerateResponse> {
    let message = Message {
        role: Role::User.into(),
        parts: vec![Part {
            part: Some(part::Part::Text("Count.".into())),
        }],
    };
    let start = Start {
        route: "default".into(),
        model: format!("{tokens}-{}", pace.as_micros()),
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
    let mut client = GenerationServiceClient::new(channel);
    client.generate(requests).await.unwrap().into_inner()
}

/// Reads a generation to its end. Every token is there, once and in order; what is committed is what
/// was shown.
async fn read(mut frames: Streaming<GenerateResponse>, tokens: usize) -> Ages {
    let (mut shown, mut ages) = (String::new(), Ages::default());
    let mut sequence = 0;
    let mut committed = None;
    while let Some(response) = frames.message().await.unwrap() {
        sequence += 1;
        assert_eq!(response.sequence, sequence);
        match response.frame.unwrap() {
            Frame::Delta(delta) => {
                let Some(Content::Text(text)) = delta.content else {
                    panic!("only text is streamed");
                };
                let now = provider::now();
                for token in text.split_terminator(' ') {
                    let (number, sent) = token.split_once('@').unwrap();
                    assert_eq!(number.parse(), Ok(ages.0.len()));
                    let sent: u64 = sent.parse().unwrap();
                    ages.0.push(now.saturating_sub(sent));
                }
                shown += &text;
            }
            Frame::Accepted(_) | Frame::AttemptStarted(_) | Frame::Waiting(_) => {}
            Frame::Committed(end) if committed.is_none() => committed = Some(text_of(end)),
            frame => panic!("{frame:?}"),
        }
    }
    assert_eq!(ages.0.len(), tokens);
    assert_eq!(committed.as_ref(), Some(&shown));
    ages
}

/// The text of a message in one part.
fn text_of(committed: Committed) -> String {
    assert!(committed.r#final);
    let [part] = &committed.message[..] else {
        panic!("{committed:?}");
    };
    match &part.part {
        Some(part::Part::Text(text)) => text.clone(),
        _ => panic!("{committed:?}"),
    }
}
