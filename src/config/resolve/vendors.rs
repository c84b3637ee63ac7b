//! Which hosts are the vendors' own: their providers have the hosted profile unless another is set.

/// Hosts, exactly.
const HOSTS: [&str; 41] = [
    "api.openai.com",
    "eu.api.openai.com",
    "us.api.openai.com",
    "openrouter.ai",
    "api.anthropic.com",
    "api.mistral.ai",
    "codestral.mistral.ai",
    "api.deepseek.com",
    "api.groq.com",
    "api.x.ai",
    "api.moonshot.ai",
    "api.moonshot.cn",
    "dashscope.aliyuncs.com",
    "dashscope-intl.aliyuncs.com",
    "dashscope-us.aliyuncs.com",
    "cn-hongkong.dashscope.aliyuncs.com",
    "api.perplexity.ai",
    "api.together.xyz",
    "api.together.ai",
    "api.fireworks.ai",
    "api.cerebras.ai",
    "api.sambanova.ai",
    "api.cohere.com",
    "api.cohere.ai",
    "api.ai21.com",
    "api.writer.com",
    "api.z.ai",
    "open.bigmodel.cn",
    "api.minimax.io",
    "api.minimaxi.com",
    "api.deepinfra.com",
    "api.novita.ai",
    "api.venice.ai",
    "api.studio.nebius.com",
    "integrate.api.nvidia.com",
    "router.huggingface.co",
    "models.github.ai",
    "api.githubcopilot.com",
    "ai-gateway.vercel.sh",
    "generativelanguage.googleapis.com",
    "aiplatform.googleapis.com",
];

/// Suffixes of hosts that carry an account or a region in front.
const SUFFIXES: [&str; 7] = [
    ".openai.azure.com",
    ".services.ai.azure.com",
    ".cognitiveservices.azure.com",
    ".models.ai.azure.com",
    "-aiplatform.googleapis.com",
    ".api.x.ai",
    ".snowflakecomputing.com",
];

/// Whether `host` is a vendor's own.
pub(super) fn is_vendor(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let is_bedrock = (host.starts_with("bedrock-runtime.") && host.ends_with(".amazonaws.com"))
        || (host.starts_with("bedrock-mantle.") && host.ends_with(".api.aws"));
    is_bedrock
        || HOSTS.contains(&host.as_str())
        || SUFFIXES.iter().any(|suffix| host.ends_with(suffix))
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
