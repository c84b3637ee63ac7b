//! Processes, and what the kernel says of them.

use std::{
    env, fs,
    io::{BufRead as _, BufReader},
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

/// `utime` and `stime` count in these; fixed for user space on Linux.
const TICK: Duration = Duration::from_millis(10);

/// A process; killed when dropped.
pub struct Process {
    child: Child,
    /// Where it listens.
    pub port: u16,
}

impl Process {
    /// This program in another role; it tells its port.
    pub fn role(words: &[&str]) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(words)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let port = line.trim().parse().expect("a port");
        Self { child, port }
    }

    /// The sidecar as users run it, on the configuration that `yaml` makes of three free ports.
    pub fn sidecar(yaml: impl FnOnce([u16; 3]) -> String, folder: &Path) -> Self {
        let ports = free_ports();
        let config = folder.join(format!("{}.yaml", ports[0]));
        fs::write(&config, yaml(ports)).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_redrive"))
            .args(["serve", "--config"])
            .arg(config)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, ports[0])).is_err() {
            thread::sleep(Duration::from_millis(10));
        }
        Self {
            child,
            port: ports[0],
        }
    }

    /// CPU time so far, user and system.
    pub fn cpu(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // The second field is the name in parentheses, which may hold anything.
        let (_, fields) = stat.rsplit_once(')').unwrap();
        let ticks: u32 = fields
            .split_whitespace()
            .skip(11)
            .take(2)
            .map(|field| field.parse::<u32>().unwrap())
            .sum();
        TICK * ticks
    }

    /// Resident memory, in KiB.
    pub fn resident_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().nth(1));
        number.unwrap().parse().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Three ports that were free a moment ago.
fn free_ports() -> [u16; 3] {
    let listeners = [(); 3].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}
