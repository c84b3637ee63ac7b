//! Frames for machines: protobuf's JSON form, from the contract's own descriptors.

use std::io;

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, SerializeOptions};

use crate::proto::{FILE_DESCRIPTOR_SET, GenerateResponse};

/// Writes frames as lines of JSON.
#[derive(Debug)]
pub(super) struct JsonLines(MessageDescriptor);

impl JsonLines {
    /// Reads the contract.
    pub(super) fn new() -> io::Result<Self> {
        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).map_err(io::Error::other)?;
        let response = pool.get_message_by_name("redrive.v1.GenerateResponse");
        let response = response.ok_or_else(|| io::Error::other("the contract is incomplete"))?;
        Ok(Self(response))
    }

    /// One line, with its end.
    pub(super) fn line(&self, response: &GenerateResponse) -> io::Result<Vec<u8>> {
        let bytes = response.encode_to_vec();
        let message = DynamicMessage::decode(self.0.clone(), bytes.as_slice());
        let message = message.map_err(io::Error::other)?;
        let mut line = serde_json::Serializer::new(Vec::new());
        let options = SerializeOptions::new()
            .use_proto_field_name(true)
            .stringify_64_bit_integers(false);
        message.serialize_with_options(&mut line, &options)?;
        let mut line = line.into_inner();
        line.push(b'\n');
        Ok(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{
        Delta, PreviewReset, Verdict, VerdictClass, delta::Content, generate_response::Frame,
    };

    fn line(frame: Frame) -> String {
        let response = GenerateResponse {
            sequence: 7,
            frame: Some(frame),
        };
        String::from_utf8(JsonLines::new().unwrap().line(&response).unwrap()).unwrap()
    }

    #[test]
    fn a_frame_is_one_line_with_the_names_of_the_contract() {
        let delta = Delta {
            attempt: 1,
            block: 0,
            content: Some(Content::Text("two\nlines".to_owned())),
        };
        assert_eq!(
            line(Frame::Delta(delta)),
            "{\"sequence\":7,\"delta\":{\"attempt\":1,\"text\":\"two\\nlines\"}}\n"
        );
        let reset = PreviewReset {
            attempt: 1,
            verdict: Some(Verdict {
                class: VerdictClass::Stall.into(),
                ..Verdict::default()
            }),
            wait: Some(prost_types::Duration {
                seconds: 1,
                nanos: 500_000_000,
            }),
            ..PreviewReset::default()
        };
        assert_eq!(
            line(Frame::PreviewReset(reset)),
            "{\"sequence\":7,\"preview_reset\":{\"attempt\":1,\"verdict\":{\"class\":\
             \"VERDICT_CLASS_STALL\"},\"wait\":\"1.500s\"}}\n"
        );
    }
}
