//! What clients ask for.

use std::time::Duration;

use redrive::proto::{
    Attach, Cancel, Conversation, Delivery, Effects, GenerateRequest, Message, Part,
    RecoveryOptions, Role, Start, generate_request::Frame, part, start::Input,
};

/// A plain question on the default route.
pub fn start() -> Start {
    Start {
        route: "default".to_owned(),
        input: Some(Input::Conversation(conversation("Say hello."))),
        ..Start::default()
    }
}

/// The same, with a request id.
pub fn start_as(request_id: &str) -> Start {
    Start {
        request_id: request_id.to_owned(),
        ..start()
    }
}

pub fn start_delivered(delivery: Delivery) -> Start {
    Start {
        delivery: delivery.into(),
        ..start()
    }
}

/// Lives on for `grace` without its RPC.
pub fn start_detached(grace: Duration) -> Start {
    Start {
        detach_grace: Some(duration(grace)),
        ..start()
    }
}

/// Options that read well at the end of another start.
pub trait StartExt {
    fn with_grace(self, grace: Duration) -> Self;
    fn on(self, route: &str) -> Self;
}

impl StartExt for Start {
    fn with_grace(mut self, grace: Duration) -> Start {
        self.detach_grace = Some(duration(grace));
        self
    }

    fn on(mut self, route: &str) -> Start {
        route.clone_into(&mut self.route);
        self
    }
}

pub fn start_with(recovery: RecoveryOptions) -> Start {
    Start {
        recovery: Some(recovery),
        ..start()
    }
}

pub fn conversation(question: &str) -> Conversation {
    Conversation {
        messages: vec![Message {
            role: Role::User.into(),
            parts: vec![Part {
                part: Some(part::Part::Text(question.to_owned())),
            }],
        }],
        ..Conversation::default()
    }
}

pub fn duration(length: Duration) -> prost_types::Duration {
    length.try_into().unwrap()
}

pub fn request(frame: Frame) -> GenerateRequest {
    GenerateRequest { frame: Some(frame) }
}

pub fn generate(start: Start) -> Frame {
    Frame::Start(start)
}

pub fn attach_to(generation_id: &str) -> Frame {
    Frame::Attach(Attach {
        generation_id: generation_id.to_owned(),
        ..Attach::default()
    })
}

pub fn attach_by_request(request_id: &str) -> Frame {
    Frame::Attach(Attach {
        request_id: request_id.to_owned(),
        ..Attach::default()
    })
}

pub fn effects(through_sequence: u64) -> Frame {
    Frame::Effects(Effects { through_sequence })
}

pub fn cancel(reason: &str) -> Frame {
    Frame::Cancel(Cancel {
        reason: reason.to_owned(),
    })
}

pub const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
