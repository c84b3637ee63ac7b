//! Arguments, the runtime, the exit code. Everything else is in the library.

use std::process::ExitCode;

use clap::Parser;
use redrive::cli::{Cli, run};

fn main() -> ExitCode {
    let cli = Cli::parse();
    match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime.block_on(run(cli)),
        Err(error) => {
            eprintln!("redrive: the runtime cannot be started: {error}");
            ExitCode::FAILURE
        }
    }
}
