//! `redrive serve` as a process of its own, in real time.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    net::SocketAddr,
    process::{Child, Command, ExitStatus, Stdio},
    sync::Mutex,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time,
};
use tonic::transport::{Channel, Endpoint};

use super::{Ended, StartExt, generate, rpc, start};

/// How long anything may take that is not bounded below it.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The grace of its drain.
pub const GRACE: Duration = Duration::from_secs(1);

/// The file of its log, in its directory.
const LOG: &str = "log";

/// A running process; killed when it is dropped.
pub struct Sidecar {
    child: Child,
    pub grpc: SocketAddr,
    pub public: SocketAddr,
    pub admin: SocketAddr,
    directory: TempDir,
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
        let rest = format!(
            "providers: {{a: {{base_url: 'http://{provider}/v1'}}}}\n\
             routes: {{default: {{targets: [{{provider: a, model: m}}], \
             recovery: {{max_attempts: 1}}, timers: {{first_token: 1s}}}}}}\n\
             drain: {{grace: 1s}}\n"
        );
        Self::configured("", &rest, descriptors).await
    }

    /// With keys of `listen` beside its addresses, and the `rest` of the file.
    pub async fn configured(listen: &str, rest: &str, descriptors: u32) -> Sidecar {
        // Another may take a port before it does: then the next ones are tried.
        for _ in 0..5 {
            let mut sidecar = Self::spawn(listen, rest, descriptors).await;
            let until = Instant::now() + PATIENCE;
            while !sidecar.has_exited() {
                if sidecar.is_ready().await && !sidecar.has_exited() {
                    return sidecar;
                }
                assert!(Instant::now() < until, "it does not come up");
                time::sleep(Duration::from_millis(20)).await;
            }
            let log = sidecar.log();
            assert!(log.contains("in use"), "it does not start: {log}");
        }
        panic!("no ports are free");
    }

    async fn spawn(listen: &str, rest: &str, descriptors: u32) -> Sidecar {
        let [grpc, public, admin] = free_addresses().await;
        let directory = TempDir::new().unwrap();
        let config = directory.path().join("redrive.yaml");
        let text = format!(
            "listen: {{grpc: '{grpc}', public: '{public}', admin: '{admin}', {listen}}}\n{rest}"
        );
        fs::write(&config, text).unwrap();
        let log = File::create(directory.path().join(LOG)).unwrap();
        let child = Command::new("sh")
            .arg("-c")
            .arg("ulimit -n \"$1\" && exec \"$2\" serve --config \"$3\"")
            .arg("sh")
            .arg(descriptors.to_string())
            .arg(env!("CARGO_BIN_EXE_redrive"))
            .arg(&config)
            .stderr(Stdio::from(log))
            .spawn()
            .unwrap();
        Sidecar {
            child,
            grpc,
            public,
            admin,
            directory,
        }
    }

    /// What a probe of the kubelet sees within its second.
    pub async fn is_ready(&self) -> bool {
        let probe = ask(self.public, "/readyz");
        matches!(
            time::timeout(Duration::from_secs(1), probe).await,
            Ok(Ok(answer)) if answer.starts_with("HTTP/1.1 200")
        )
    }

    /// The text of its metrics.
    pub async fn metrics(&self) -> String {
        let answer = time::timeout(PATIENCE, ask(self.public, "/metrics")).await;
        answer.expect("no metrics").expect("no metrics")
    }

    /// What the admin listener answers to `GET /status`.
    pub async fn status(&self) -> serde_json::Value {
        let answer = time::timeout(PATIENCE, ask(self.admin, "/status")).await;
        let answer = answer.expect("no status").expect("no status");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
        serde_json::from_str(body).unwrap()
    }

    /// All that is alive in it, by the names of its metrics.
    pub async fn gauges(&self) -> BTreeMap<String, i64> {
        let text = self.metrics().await;
        let alive = text.lines().filter_map(|line| {
            let (name, value) = line.rsplit_once(' ')?;
            let name = name.split('{').next()?;
            let counts = name.ends_with("_active") || name.ends_with("_bytes");
            (!name.starts_with('#') && counts).then(|| (name.to_owned(), value.parse().unwrap()))
        });
        alive.collect()
    }

    /// A connection of a good client.
    pub async fn channel(&self) -> Channel {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.grpc)).unwrap();
        endpoint.connect().await.unwrap()
    }

    /// One generation over a connection of its own.
    pub async fn generate(&self) -> Ended {
        self.generate_on(&self.channel().await, "default").await
    }

    /// One generation of a route.
    pub async fn generate_on(&self, channel: &Channel, route: &str) -> Ended {
        let generation = async {
            let rpc = rpc::open(channel, None).await;
            rpc.send(generate(start().on(route)));
            rpc.end().await
        };
        time::timeout(PATIENCE, generation).await.expect("it hangs")
    }

    /// Resident memory in bytes: now, and the most it ever was.
    pub fn resident(&self) -> (u64, u64) {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let of = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kib = line.unwrap().trim().strip_suffix(" kB").unwrap();
            kib.parse::<u64>().unwrap() << 10
        };
        (of("VmRSS:"), of("VmHWM:"))
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join(LOG)).unwrap()
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

    /// Gone at once, without a word to anybody.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
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

/// What a listener answers.
async fn ask(listener: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(listener).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// Addresses that were free a moment ago, each of which is given once: where two sidecars start at a time, the
/// readiness of one must not be taken for the other's.
async fn free_addresses() -> [SocketAddr; 3] {
    static GIVEN: Mutex<BTreeSet<SocketAddr>> = Mutex::new(BTreeSet::new());
    let bind = || TcpListener::bind("127.0.0.1:0");
    loop {
        let listeners = [
            bind().await.unwrap(),
            bind().await.unwrap(),
            bind().await.unwrap(),
        ];
        let addresses = listeners.map(|listener| listener.local_addr().unwrap());
        let mut given = GIVEN.lock().unwrap();
        if addresses.iter().all(|address| given.insert(*address)) {
            return addresses;
        }
    }
}
