//! What the name of a model tells: the tokenizer, and what an image costs at most.

use bpe_openai::{Tokenizer, cl100k_base, o200k_base};

/// A kind of models that count alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Model {
    /// gpt-3.5 and gpt-4.
    Cl100k,
    /// gpt-4o-mini, whose images cost 33 times what they cost elsewhere.
    Gpt4oMini,
    /// gpt-4o, gpt-4.1, gpt-4.5, and the models named o1, o3, and so on.
    O200k,
    /// gpt-oss, which puts a system text before every conversation.
    GptOss,
    /// gpt-5 and what follows.
    Gpt5,
    /// Claude, wherever it is served.
    Claude,
    /// All others.
    Other,
}

impl Model {
    /// By the last part of `name`, since gateways put vendors before it (`openai/gpt-4o`, `openai.gpt-oss-20b`,
    /// `us.anthropic.claude-..`) and fine-tuned models are named `ft:gpt-4o:..`.
    pub(super) fn named(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        if name.contains("claude") {
            return Self::Claude;
        }
        let name = name.rsplit('/').next().unwrap_or_default();
        let name = name.strip_prefix("ft:").unwrap_or(name);
        let name = name.strip_prefix("openai.").unwrap_or(name);
        let name = name.strip_prefix("chat").unwrap_or(name);
        let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
        if starts(&["gpt-oss"]) {
            Self::GptOss
        } else if starts(&["gpt-4o-mini"]) {
            Self::Gpt4oMini
        } else if starts(&["gpt-4o", "gpt-4.1", "gpt-4.5"]) || is_o_series(name) {
            Self::O200k
        } else if starts(&["gpt-3.5", "gpt-35", "gpt-4"]) {
            Self::Cl100k
        } else if name
            .strip_prefix("gpt-")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        {
            Self::Gpt5
        } else {
            Self::Other
        }
    }

    /// The tokenizer that the vendor publishes for it.
    pub(super) fn tokenizer(self) -> Option<&'static Tokenizer> {
        match self {
            Self::Cl100k => Some(cl100k_base()),
            Self::Gpt4oMini | Self::O200k | Self::GptOss | Self::Gpt5 => Some(o200k_base()),
            Self::Claude | Self::Other => None,
        }
    }

    /// What one image costs at most, by the vendor's published rule for the largest that it accepts.
    pub(super) fn tokens_per_image(self) -> u64 {
        match self {
            // 2,833 and 5,667 for each tile of 512 x 512; at most 8 tiles (768 x 2,048).
            Self::Gpt4oMini => 48_169,
            // Tiles: 85 + 8 x 170. Patches: 1,536 of them, times 2.46 (gpt-4.1-nano).
            Self::Cl100k | Self::O200k | Self::GptOss => 3_779,
            // `original` detail: 10,000 patches.
            Self::Gpt5 => 10_000,
            // 3.75 megapixels in patches of 28 x 28; earlier models 1,568.
            Self::Claude => 4_784,
            // Qwen-VL's default bound, the largest known: 12,845,056 pixels in patches of 28 x 28.
            Self::Other => 16_384,
        }
    }

    /// The tokens of the system text that its chat template adds unasked.
    pub(super) fn preamble(self) -> u64 {
        match self {
            Self::GptOss => 128,
            _ => 0,
        }
    }

    /// The tokens of the text that explains tools to it, beside their definitions.
    pub(super) fn tools(self) -> u64 {
        match self {
            Self::Cl100k | Self::Gpt4oMini | Self::O200k | Self::GptOss | Self::Gpt5 => 32,
            // Anthropic publishes up to 530; chat templates of open models take up to 250.
            Self::Claude | Self::Other => 600,
        }
    }
}

/// `o1`, `o3-mini`, `o4-mini-2025-04-16`.
fn is_o_series(name: &str) -> bool {
    let Some(rest) = name.strip_prefix('o') else {
        return false;
    };
    let generation = rest.split('-').next().unwrap_or_default();
    !generation.is_empty() && generation.bytes().all(|byte| byte.is_ascii_digit())
}
