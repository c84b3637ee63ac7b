//! Which hosts are the vendors' own: their providers have the hosted profile unless another is set.

use crate::protocol::adapter::ADAPTERS;

/// Whether `host` is a vendor's own.
pub(super) fn is_vendor(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    ADAPTERS
        .iter()
        .flat_map(|(.., adapter)| adapter.vendor_hosts())
        .any(|pattern| matches(pattern, &host))
}

/// Whether `host` is `pattern`, in which one `*` stands for anything but nothing.
fn matches(pattern: &str, host: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else {
        return pattern == host;
    };
    let rest = host.strip_prefix(before);
    rest.and_then(|rest| rest.strip_suffix(after))
        .is_some_and(|between| !between.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_vendors_and_nobody_else() {
        for host in [
            "api.openai.com",
            "API.OpenAI.com.",
            "my-account.openai.azure.com",
            "bedrock-runtime.eu-central-1.amazonaws.com",
            "bedrock-mantle.us-east-1.api.aws",
            "eu-west-1.api.x.ai",
            "my-org.snowflakecomputing.com",
            "dashscope-intl.aliyuncs.com",
        ] {
            assert!(is_vendor(host), "{host}");
        }
        for host in [
            "localhost",
            "127.0.0.1",
            "api.openai.com.example.org",
            "openai.azure.com",
            "notapi.openai.com",
            "vllm.internal",
            "api.x.ai.internal",
            "oss.aliyuncs.com",
        ] {
            assert!(!is_vendor(host), "{host}");
        }
    }
}
