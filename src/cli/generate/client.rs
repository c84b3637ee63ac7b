//! The gRPC client of a terminal: one `Generate` stream.

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{
    Status, Streaming,
    transport::{Channel, Endpoint},
};

use crate::proto::{
    Cancel, GenerateRequest, GenerateResponse, generate_request::Frame,
    generation_service_client::GenerationServiceClient,
};

/// The largest frame that the contract allows is 3 MiB and what stands around it.
const MAX_FRAME: usize = 4 << 20;

/// There is no connection to a sidecar.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address cannot be read.
    #[error("{address}: not an address such as http://127.0.0.1:50051 ({reason})")]
    Address {
        /// What was given.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Nobody answers there.
    #[error(
        "nothing answers at {address} ({reason}); is the sidecar running, and is this its address?"
    )]
    Connect {
        /// What was given.
        address: String,
        /// What the system says.
        reason: String,
    },
}

/// Connects to the sidecar at `address` (`http://HOST:PORT`, or just `HOST:PORT`).
///
/// # Errors
/// If it cannot be reached.
#[allow(
    clippy::disallowed_methods,
    reason = "the terminal client calls a sidecar, never a provider: its door accounts for what is sent"
)]
pub async fn connect(address: &str) -> Result<Channel, ConnectError> {
    let url = match address.contains("://") {
        true => address.to_owned(),
        false => format!("http://{address}"),
    };
    let endpoint = Endpoint::from_shared(url).map_err(|error| ConnectError::Address {
        address: address.to_owned(),
        reason: error.to_string(),
    })?;
    endpoint.connect().await.map_err(|error| {
        let cause = std::error::Error::source(&error);
        ConnectError::Connect {
            address: address.to_owned(),
            reason: cause.map_or_else(|| error.to_string(), innermost),
        }
    })
}

fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// An open `Generate` stream.
#[derive(Debug)]
pub struct Stream {
    requests: mpsc::Sender<GenerateRequest>,
    frames: Streaming<GenerateResponse>,
}

impl Stream {
    /// Opens it with its first frame.
    ///
    /// # Errors
    /// The status with which the sidecar refuses the RPC.
    pub async fn open(channel: Channel, first: Frame) -> Result<Self, Status> {
        // The first frame and a cancel.
        let (requests, receiver) = mpsc::channel(2);
        let mut client = GenerationServiceClient::new(channel).max_decoding_message_size(MAX_FRAME);
        let first = GenerateRequest { frame: Some(first) };
        requests
            .try_send(first)
            .map_err(|_| Status::internal("the first frame finds no room"))?;
        let frames = client.generate(ReceiverStream::new(receiver)).await?;
        Ok(Self {
            requests,
            frames: frames.into_inner(),
        })
    }

    /// The next frame; `None` at the end.
    ///
    /// # Errors
    /// The status that ends the RPC.
    pub async fn next(&mut self) -> Result<Option<GenerateResponse>, Status> {
        self.frames.message().await
    }

    /// Ends the generation. The terminal frame still comes.
    pub fn cancel(&self, reason: &str) {
        let cancel = Frame::Cancel(Cancel {
            reason: reason.to_owned(),
        });
        // Only a second cancel finds no room; the first is enough.
        let _ = self.requests.try_send(GenerateRequest {
            frame: Some(cancel),
        });
    }
}
