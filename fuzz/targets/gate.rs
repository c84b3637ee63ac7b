//! Any schema and any arguments: an answer that is short, in the end, and none that refuses what is not looked at.

use redrive::gate::{Misfit, Schema};

/// The schema up to the first empty line, and then the arguments.
pub fn run(data: &[u8]) {
    let (schema, arguments) = match data.windows(2).position(|two| two == b"\n\n") {
        Some(at) => (&data[..at], &data[at + 2..]),
        None => (data, [].as_slice()),
    };
    let schema = Schema::read(schema);
    let arguments = String::from_utf8_lossy(arguments);
    let found = schema.validate(&arguments);
    assert_eq!(
        found,
        schema.clone().validate(&arguments),
        "not the same twice"
    );
    let is_object =
        arguments.is_empty() || serde_json::from_str::<serde_json::Map<_, _>>(&arguments).is_ok();
    match found {
        Ok(()) => {}
        Err(Misfit::NoObject) => assert!(!is_object, "an object is one"),
        Err(Misfit::Faults(faults)) => {
            assert!(
                schema.is_looked_at(),
                "a call must not be refused unchecked"
            );
            assert!(faults.len() <= 16);
            assert!(faults.iter().all(|fault| fault.chars().count() <= 64));
        }
    }
}
