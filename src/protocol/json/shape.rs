//! Objects of a protocol, read without a tree: those of a plain delta are walked in one pass, every
//! other value is kept as its raw text or skipped.
//!
//! Nothing here fails because of a value's type: what is not an object where one is expected reads
//! as [`Shape::Wrong`], so that an error object beside it is still found. Of a repeated key the last
//! one counts, as in every server's own JSON library. The walk has a fixed depth, so deep nesting in
//! a chunk costs no stack.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize,
    de::{Deserializer, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// Whether a value was there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::protocol) enum Shape {
    /// Absent, or `null`.
    #[default]
    Absent,
    /// As the protocol has it.
    Right,
    /// Of another type.
    Wrong,
}

/// Visits of every type but the expected one.
macro_rules! of_any_other_type {
    () => {
        fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
            Ok(Default::default())
        }

        fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<Self::Value, E> {
            Ok(Self::Value::wrong())
        }

        fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<Self::Value, E> {
            Ok(Self::Value::wrong())
        }

        fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<Self::Value, E> {
            Ok(Self::Value::wrong())
        }

        fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<Self::Value, E> {
            Ok(Self::Value::wrong())
        }

        fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<Self::Value, E> {
            Ok(Self::Value::wrong())
        }
    };
}

/// An object of the protocol: the keys that are read, and how. A field is called as its key, unless the
/// key is given behind `as`.
macro_rules! object {
    (@key $field:ident) => {
        stringify!($field)
    };
    (@key $field:ident $key:literal) => {
        $key
    };
    ($(#[$doc:meta])* $name:ident { $($field:ident $(as $key:literal)?: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub(in crate::protocol) struct $name<'a> {
            #[allow(dead_code, reason = "of some objects only the fields matter")]
            pub(in crate::protocol) shape: Shape,
            $(pub(in crate::protocol) $field: $type,)*
        }

        impl $name<'_> {
            fn wrong() -> Self {
                Self { shape: Shape::Wrong, ..Self::default() }
            }
        }

        impl<'de: 'a, 'a> Deserialize<'de> for $name<'a> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[allow(non_camel_case_types)]
                enum Key {
                    $($field,)*
                    Other,
                }

                impl<'de> Deserialize<'de> for Key {
                    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                        struct KeyVisitor;

                        impl Visitor<'_> for KeyVisitor {
                            type Value = Key;

                            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                                f.write_str("a key")
                            }

                            fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<Key, E> {
                                Ok(match key {
                                    $(object!(@key $field $($key)?) => Key::$field,)*
                                    _ => Key::Other,
                                })
                            }
                        }

                        d.deserialize_identifier(KeyVisitor)
                    }
                }

                struct ObjectVisitor;

                impl<'de> Visitor<'de> for ObjectVisitor {
                    type Value = $name<'de>;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: MapAccess<'de>>(
                        self,
                        mut map: A,
                    ) -> Result<Self::Value, A::Error> {
                        let mut object = $name { shape: Shape::Right, ..$name::default() };
                        while let Some(key) = map.next_key::<Key>()? {
                            match key {
                                $(Key::$field => object.$field = map.next_value()?,)*
                                Key::Other => {
                                    map.next_value::<IgnoredAny>()?;
                                }
                            }
                        }
                        Ok(object)
                    }

                    fn visit_seq<A: SeqAccess<'de>>(
                        self,
                        mut items: A,
                    ) -> Result<Self::Value, A::Error> {
                        while items.next_element::<IgnoredAny>()?.is_some() {}
                        Ok($name::wrong())
                    }

                    of_any_other_type!();
                }

                deserializer.deserialize_any(ObjectVisitor)
            }
        }
    };
}

pub(in crate::protocol) use {object, of_any_other_type};

/// Reads the items of a JSON list one after the other, without collecting them. An error if it is no
/// list.
pub(in crate::protocol) fn each<'a, T: Deserialize<'a>>(
    list: &'a RawValue,
    read: impl FnMut(T),
) -> Result<(), serde_json::Error> {
    struct EachVisitor<T, F>(F, PhantomData<T>);

    impl<'de, T: Deserialize<'de>, F: FnMut(T)> Visitor<'de> for EachVisitor<T, F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
            while let Some(item) = items.next_element()? {
                (self.0)(item);
            }
            Ok(())
        }
    }

    let mut deserializer = serde_json::Deserializer::from_str(list.get());
    deserializer.deserialize_seq(EachVisitor(read, PhantomData))
}
