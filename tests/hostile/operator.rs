//! Signals that come by mistake.

use std::time::Duration;

use tokio::time;

use crate::{
    providers::{answering, whole},
    sidecar::{GRACE, Sidecar},
};

#[tokio::test]
async fn a_hangup_ends_nothing() {
    let mut sidecar = Sidecar::start(answering(whole()).await, 1024).await;
    sidecar.signal("HUP");
    time::sleep(Duration::from_millis(200)).await;
    assert!(!sidecar.has_exited());
    assert_eq!(sidecar.generate().await.message(), "Hello");
    sidecar.signal("HUP");
    let (status, took) = sidecar.terminate().await;
    assert_eq!(status.code(), Some(0));
    assert!(took < GRACE + Duration::from_secs(3), "{took:?}");
}
