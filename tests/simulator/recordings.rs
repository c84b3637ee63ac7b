//! Every recording can be played, with every byte and with the reads that were recorded.

use std::path::{Path, PathBuf};

use redrive::simulator::{After, Library, Op, Options, Pace, Playlist, Recording, Simulator};
use serde_json::Value;

use crate::support::*;

/// The folder of recordings and the lines of its manifest.
fn recordings() -> Option<(PathBuf, Vec<Value>)> {
    let root = std::env::var("REDRIVE_RECORDINGS").unwrap_or("../shared/fixtures".to_owned());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(root);
    let Ok(manifest) = std::fs::read_to_string(root.join("MANIFEST.jsonl")) else {
        println!("SKIPPED: no recordings to simulate; set REDRIVE_RECORDINGS to their folder");
        return None;
    };
    let lines = manifest
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    Some((root.clone(), lines.collect()))
}

/// One of each folder, and all whose reads are known.
fn chosen(lines: &[Value]) -> Vec<&Value> {
    let mut folders = Vec::new();
    let chosen = lines.iter().filter(|line| {
        let folder = line["file"].as_str().unwrap().split('/').next().unwrap();
        let new = !folders.contains(&folder);
        folders.push(folder);
        new || line["chunk_sizes"].is_array()
    });
    chosen.collect()
}

#[test]
fn recordings_keep_every_byte_and_the_reads_that_are_known() {
    let Some((root, lines)) = recordings() else {
        return;
    };
    let mut known = 0;
    for line in chosen(&lines) {
        let file = root.join(line["file"].as_str().unwrap());
        let recording = Recording::load(&file).unwrap();
        let script = recording.script(Pace::Recorded);
        let writes = script.body.iter().map(|op| match op {
            Op::Write(bytes) => bytes.clone(),
            other => panic!("{other:?}"),
        });
        let writes: Vec<_> = writes.collect();
        assert_eq!(
            writes.concat(),
            std::fs::read(&file).unwrap(),
            "{}",
            file.display()
        );
        if let Some(sizes) = line["chunk_sizes"].as_array() {
            known += 1;
            let lengths: Vec<_> = writes.iter().map(|write| write.len() as u64).collect();
            let sizes: Vec<_> = sizes.iter().map(|size| size.as_u64().unwrap()).collect();
            assert_eq!(lengths, sizes, "{}", file.display());
        }
        assert_eq!(
            u64::from(script.status),
            line["status"].as_u64().unwrap_or(200)
        );
    }
    assert!(known > 0, "no recording has its reads");
}

#[tokio::test]
async fn a_recording_comes_over_the_wire_as_it_is() {
    let Some((root, lines)) = recordings() else {
        return;
    };
    let file = root.join(lines[0]["file"].as_str().unwrap());
    let script = Recording::load(&file).unwrap().script(Pace::Recorded);
    let bytes: u64 = std::fs::metadata(&file).unwrap().len();
    let mut library = Library::default();
    library.insert("it", Playlist::new([script], After::RepeatLast));
    library.answer_others_with("it").unwrap();
    let simulator = Simulator::start(Options::default(), library).await.unwrap();
    let mut stream = connect(&simulator).await;
    post(&mut stream, "{}").await;
    until(&mut stream, "\r\n0\r\n\r\n").await;
    assert_eq!(ended(&simulator, 1).await.bytes_sent, bytes);
}
