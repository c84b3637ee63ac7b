//! What looks like an action that was announced and not done.

use redrive::gate::{Decision, Policy, Reason, decide};

use crate::{attempt, retry};

fn is_announced(text: &str) -> bool {
    let mut snapshot = attempt();
    snapshot.visible_text = text.to_owned().into();
    let decision = decide(&snapshot, &Policy::LENIENT);
    if !matches!(decision, Decision::Accept { .. }) {
        assert_eq!(decision, retry(Reason::MissingTool), "{text}");
    }
    decision == retry(Reason::MissingTool)
}

#[test]
fn an_announcement_begins_with_an_intent_and_a_verb() {
    for text in [
        "I'll run the tests.",
        "i’ll run the tests",
        "I will read the file first.",
        "I WILL NOW DEPLOY",
        "Let me check: one moment",
        "let me\n\nlook, please",
        "I need to open `src/main.rs`.",
        "Next I'll verify it.",
        "Next, I'll build it.",
        "next i will fetch it",
        "Next, I will now update it",
        "  - I'll search for it.",
        "> **Let me edit** that",
        "# I'll write-protect it",
    ] {
        assert!(is_announced(text), "{text}");
    }
}

#[test]
fn each_verb_counts_and_only_as_a_whole_word() {
    for verb in [
        "build", "call", "check", "create", "deploy", "edit", "execute", "fetch", "inspect",
        "look", "open", "read", "run", "search", "test", "update", "use", "verify", "write",
    ] {
        assert!(is_announced(&format!("I'll {verb} it")), "{verb}");
        assert!(is_announced(&format!("I'll {verb}")), "{verb}");
        assert!(!is_announced(&format!("I'll {verb}x it")), "{verb}");
        assert!(!is_announced(&format!("I'll {verb}_it")), "{verb}");
    }
}

#[test]
fn chinese_announcements_count() {
    for text in [
        "我将运行测试。",
        "我会立即执行",
        "我先检查一下",
        "我来查看文件",
        "我需要读取文件",
        "我正在编辑",
        "让我修改它",
        "让我先写入",
        "接下来我将搜索",
        "接下来打开文件",
        "现在我来调用工具",
        "现在使用它",
        "下面我会马上测试",
        "正在验证",
        "正在构建",
        "我将部署",
        "我将创建",
        "我将更新",
        "我将获取",
        "接下来我先来运行",
        "下面我来马上测试",
        "接下来我需要检查",
        "现在我正在部署",
    ] {
        assert!(is_announced(text), "{text}");
    }
}

#[test]
fn explanations_advice_and_results_are_answers() {
    for text in [
        "I ran the tests, all green.",
        "I'll be glad to help.",
        "I'll",
        "I will not run it.",
        "Let me explain: to run it, use make.",
        "Let me know if I should run it.",
        "You should run the tests.",
        "I need two files to read.",
        "Here is what I'll run: nothing.",
        "To build it, I'll need a compiler.",
        "Next, run the tests.",
        "now run it",
        "I'll then now run it",
        "I’ve checked it.",
        "我运行了测试。",
        "测试已经运行",
        "让我解释一下",
        "接下来我建议你运行它",
        "先运行测试，然后提交。",
        "将运行的测试列在下面",
    ] {
        assert!(!is_announced(text), "{text}");
    }
}
