//! `redrive serve` as a process of its own.

use std::{
    fs,
    net::SocketAddr,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time,
};
use tonic::transport::Endpoint;

use crate::support::{Ended, generate, rpc, start};

/// How long anything may take that is not bounded below it.
const PATIENCE: Duration = Duration::from_secs(20);

/// The grace of its drain.
pub const GRACE: Duration = Duration::from_secs(1);

/// A running process; killed when it is dropped.
pub struct Sidecar {
    child: Child,
    pub grpc: SocketAddr,
    pub public: SocketAddr,
    _directory: TempDir,
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Sidecar {
    /// In front of the provider at `provider`, with at most `descriptors` file descriptors.
    pub async fn start(provider: SocketAddr, descriptors: u32) -> Sidecar {
        let [grpc, public, admin] = free_addresses().await;
        let directory = TempDir::new().unwrap();
        let config = directory.path().join("redrive.yaml");
        let text = format!(
            "listen: {{grpc: '{grpc}', public: '{public}', admin: '{admin}'}}\n\
             providers: {{a: {{base_url: 'http://{provider}/v1'}}}}\n\
             routes: {{default: {{targets: [{{provider: a, model: m}}], \
             recovery: {{max_attempts: 1}}, timers: {{first_token: 1s}}}}}}\n\
             drain: {{grace: 1s}}\n"
        );
        fs::write(&config, text).unwrap();
        let child = Command::new("sh")
            .arg("-c")
            .arg("ulimit -n \"$1\" && exec \"$2\" serve --config \"$3\"")
            .arg("sh")
            .arg(descriptors.to_string())
            .arg(env!("CARGO_BIN_EXE_redrive"))
            .arg(&config)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let sidecar = Sidecar {
            child,
            grpc,
            public,
            _directory: directory,
        };
        let until = Instant::now() + PATIENCE;
        while !sidecar.is_ready().await {
            assert!(Instant::now() < until, "it does not come up");
            time::sleep(Duration::from_millis(20)).await;
        }
        sidecar
    }

    /// What a probe of the kubelet sees within its second.
    pub async fn is_ready(&self) -> bool {
        let probe = async {
            let mut stream = TcpStream::connect(self.public).await?;
            let request = b"GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n";
            stream.write_all(request).await?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await?;
            Ok::<_, std::io::Error>(answer.starts_with("HTTP/1.1 200"))
        };
        matches!(
            time::timeout(Duration::from_secs(1), probe).await,
            Ok(Ok(true))
        )
    }

    /// One generation over a connection of its own.
    pub async fn generate(&self) -> Ended {
        let generation = async {
            let endpoint = Endpoint::from_shared(format!("http://{}", self.grpc)).unwrap();
            let rpc = rpc::open(&endpoint.connect().await.unwrap(), None).await;
            rpc.send(generate(start()));
            rpc.end().await
        };
        time::timeout(PATIENCE, generation).await.expect("it hangs")
    }

    /// Processor time that it uses in a second from now.
    pub async fn busy_for(&self) -> Duration {
        let before = self.ticks();
        time::sleep(Duration::from_secs(1)).await;
        // The kernel counts in hundredths of a second.
        Duration::from_millis(10 * (self.ticks() - before))
    }

    fn ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        let fields: Vec<&str> = fields.split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }

    pub fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args(["-s", name, &self.child.id().to_string()])
            .status();
        assert!(status.unwrap().success());
    }

    pub fn has_exited(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Ends it by SIGTERM: how, and after how long.
    pub async fn terminate(mut self) -> (ExitStatus, Duration) {
        let from = Instant::now();
        self.signal("TERM");
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status, from.elapsed());
            }
            assert!(from.elapsed() < PATIENCE, "it does not end");
            time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Addresses that were free a moment ago.
async fn free_addresses() -> [SocketAddr; 3] {
    let bind = || TcpListener::bind("127.0.0.1:0");
    let listeners = [
        bind().await.unwrap(),
        bind().await.unwrap(),
        bind().await.unwrap(),
    ];
    listeners.map(|listener| listener.local_addr().unwrap())
}
