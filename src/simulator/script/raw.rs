//! A script as it stands in a file, and its bounds.

use std::{collections::BTreeMap, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use h2::Reason;
use http::{HeaderName, HeaderValue};
use serde::Deserialize;

use super::{Close, ConnectFault, MAX_FILL, MAX_REPEATED, MAX_TIME};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Script {
    #[serde(default)]
    status: Option<u16>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: Vec<Op>,
    #[serde(default)]
    connect: Option<ConnectFault>,
    #[serde(default)]
    h2: Option<Vec<FrameOp>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Op {
    Chunk(String),
    ChunkB64(String),
    SleepMs(u64),
    Repeat(Repeat),
    Fill(Fill),
    Close(Close),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Repeat {
    #[serde(default)]
    chunk: Option<String>,
    #[serde(default)]
    fill: Option<Fill>,
    #[serde(default)]
    every_ms: u64,
    times: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fill {
    #[serde(default)]
    before: String,
    byte: String,
    count: u64,
    #[serde(default)]
    after: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum FrameOp {
    Headers(BTreeMap<String, serde_json::Value>),
    Data(String),
    SleepMs(u64),
    Goaway(GoAway),
    RstStream(String),
    EndStream(bool),
    Close(Close),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GoAway {
    #[serde(default)]
    code: Option<String>,
    last_stream_id: LastStream,
}

#[derive(Deserialize)]
enum LastStream {
    #[serde(rename = "below ours")]
    BelowOurs,
    #[serde(rename = "ours")]
    Ours,
}

impl TryFrom<Script> for super::Script {
    type Error = String;

    fn try_from(raw: Script) -> Result<Self, String> {
        check_headers(&raw.headers)?;
        let body = raw.body.into_iter().map(super::Op::try_from);
        let frames = raw
            .h2
            .map(|ops| ops.into_iter().map(super::FrameOp::try_from).collect());
        Ok(Self {
            status: status(raw.status.unwrap_or(200))?,
            headers: lowercase(raw.headers),
            body: body.collect::<Result<_, _>>()?,
            connect: raw.connect,
            frames: frames.transpose()?,
            fin_when_idle: false,
        })
    }
}

impl TryFrom<Op> for super::Op {
    type Error = String;

    fn try_from(raw: Op) -> Result<Self, String> {
        Ok(match raw {
            Op::Chunk(text) => Self::Write(Bytes::from(text)),
            Op::ChunkB64(text) => {
                let bytes = STANDARD.decode(text);
                Self::Write(bytes.map_err(|error| format!("chunk_b64: {error}"))?.into())
            }
            Op::SleepMs(length) => Self::Pause(pause(length)?),
            Op::Repeat(repeat) => Self::Repeat {
                every: pause(repeat.every_ms)?,
                times: repeat.times,
                bytes: match (repeat.chunk, repeat.fill) {
                    (Some(chunk), None) => Bytes::from(chunk),
                    (None, Some(fill)) => bounded(fill, MAX_REPEATED)?.render(),
                    _ => return Err("repeat: either `chunk` or `fill`".to_owned()),
                },
            },
            Op::Fill(fill) => Self::Fill(bounded(fill, MAX_FILL)?),
            Op::Close(close) => Self::Close(close),
        })
    }
}

impl TryFrom<FrameOp> for super::FrameOp {
    type Error = String;

    fn try_from(raw: FrameOp) -> Result<Self, String> {
        Ok(match raw {
            FrameOp::Headers(headers) => {
                let mut headers = plain(headers)?;
                let given = headers.remove(":status").unwrap_or("200".to_owned());
                let wrong = |_| format!("headers: `:status` is {given:?}");
                let status = status(given.parse().map_err(wrong)?)?;
                check_headers(&headers)?;
                Self::Headers(status, lowercase(headers))
            }
            FrameOp::Data(text) => Self::Data(Bytes::from(text)),
            FrameOp::SleepMs(length) => Self::Pause(pause(length)?),
            FrameOp::Goaway(goaway) => Self::GoAway {
                code: code(goaway.code.as_deref().unwrap_or("NO_ERROR"))?,
                processed: matches!(goaway.last_stream_id, LastStream::Ours),
            },
            FrameOp::RstStream(name) => Self::RstStream(code(&name)?),
            FrameOp::EndStream(true) => Self::EndStream,
            FrameOp::EndStream(false) => return Err("end_stream: only `true`".to_owned()),
            FrameOp::Close(Close::Clean | Close::Fin) => Self::Close,
            FrameOp::Close(_) => return Err("close: only `clean` or `fin`".to_owned()),
        })
    }
}

fn status(status: u16) -> Result<u16, String> {
    match status {
        200..=599 => Ok(status),
        _ => Err(format!("status {status} is not between 200 and 599")),
    }
}

fn lowercase(headers: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let headers = headers.into_iter();
    headers
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
        .collect()
}

fn check_headers(headers: &BTreeMap<String, String>) -> Result<(), String> {
    for (name, value) in headers {
        HeaderName::try_from(name).map_err(|_| format!("headers: {name:?} is no name"))?;
        HeaderValue::try_from(value).map_err(|_| format!("headers: the value of {name:?}"))?;
    }
    Ok(())
}

fn plain(headers: BTreeMap<String, serde_json::Value>) -> Result<BTreeMap<String, String>, String> {
    let text = |(name, value)| match value {
        serde_json::Value::String(text) => Ok((name, text)),
        serde_json::Value::Number(number) => Ok((name, number.to_string())),
        _ => Err(format!("headers: {name:?} is neither text nor number")),
    };
    headers.into_iter().map(text).collect()
}

fn pause(millis: u64) -> Result<Duration, String> {
    let length = Duration::from_millis(millis);
    match length <= MAX_TIME {
        true => Ok(length),
        false => Err(format!("{millis} ms is longer than an hour")),
    }
}

fn bounded(raw: Fill, most: u64) -> Result<super::Fill, String> {
    let fill = super::Fill {
        before: raw.before.into(),
        byte: raw.byte.into(),
        count: raw.count,
        after: raw.after.into(),
    };
    match fill.len() <= most && !fill.byte.is_empty() {
        true => Ok(fill),
        false => Err(format!(
            "fill: {} bytes are not between 1 and {most}",
            fill.len()
        )),
    }
}

/// The error codes of RFC 9113, section 7, by name.
fn code(name: &str) -> Result<u32, String> {
    let codes = [
        ("NO_ERROR", Reason::NO_ERROR),
        ("PROTOCOL_ERROR", Reason::PROTOCOL_ERROR),
        ("INTERNAL_ERROR", Reason::INTERNAL_ERROR),
        ("FLOW_CONTROL_ERROR", Reason::FLOW_CONTROL_ERROR),
        ("SETTINGS_TIMEOUT", Reason::SETTINGS_TIMEOUT),
        ("STREAM_CLOSED", Reason::STREAM_CLOSED),
        ("FRAME_SIZE_ERROR", Reason::FRAME_SIZE_ERROR),
        ("REFUSED_STREAM", Reason::REFUSED_STREAM),
        ("CANCEL", Reason::CANCEL),
        ("COMPRESSION_ERROR", Reason::COMPRESSION_ERROR),
        ("CONNECT_ERROR", Reason::CONNECT_ERROR),
        ("ENHANCE_YOUR_CALM", Reason::ENHANCE_YOUR_CALM),
        ("INADEQUATE_SECURITY", Reason::INADEQUATE_SECURITY),
        ("HTTP_1_1_REQUIRED", Reason::HTTP_1_1_REQUIRED),
    ];
    let found = codes.iter().find(|(known, _)| *known == name);
    let code = found.map(|(_, reason)| u32::from(*reason));
    code.ok_or_else(|| format!("{name:?} is no error code of HTTP/2"))
}
