//! The table.

use std::fs;

/// One line of the table.
struct Line {
    what: String,
    sidecar: String,
    floor: String,
    ratio: String,
    target: String,
}

/// What was measured so far.
pub struct Report(Vec<Line>);

impl Report {
    pub fn new() -> Self {
        Self(Vec::new())
    }

    /// A line that compares, with its target if it has one.
    pub fn compare(&mut self, what: &str, unit: &str, [sidecar, floor]: [f64; 2], target: &str) {
        self.0.push(Line {
            what: what.to_owned(),
            sidecar: number(sidecar, unit),
            floor: number(floor, unit),
            ratio: format!("{:.2}", sidecar / floor),
            target: target.to_owned(),
        });
    }

    /// A line about the sidecar alone.
    pub fn alone(&mut self, what: &str, value: String, target: &str) {
        self.0.push(Line {
            what: what.to_owned(),
            sidecar: value,
            floor: String::new(),
            ratio: String::new(),
            target: target.to_owned(),
        });
    }

    pub fn print(&self) {
        println!("\nMachine: {}\n", machine());
        println!("| what | sidecar | floor | ratio | target |");
        println!("|---|---:|---:|---:|---|");
        for line in &self.0 {
            println!(
                "| {} | {} | {} | {} | {} |",
                line.what, line.sidecar, line.floor, line.ratio, line.target
            );
        }
    }
}

fn number(value: f64, unit: &str) -> String {
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$}{unit}")
}

/// Cores, their kind, memory and the kernel.
fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        let value = line.and_then(|line| line.split_once(':'));
        value
            .map(|(_, value)| value.trim().to_owned())
            .unwrap_or_default()
    };
    let cpu = read("/proc/cpuinfo");
    let cores = cpu
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    let memory = field(&read("/proc/meminfo"), "MemTotal");
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    format!(
        "{cores} × {}, {memory}, Linux {}; load at the end {}",
        field(&cpu, "model name"),
        kernel.trim(),
        load.split(' ').next().unwrap_or_default()
    )
}
