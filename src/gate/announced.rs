//! Whether a text announces an action instead of doing it.
//!
//! Narrow on purpose: only a text that *begins* with the announcement counts, and only with a verb for
//! which an agent has tools. An explanation or a piece of advice must not look like one.

/// English announcements, word by word.
const OPENERS: [&[&str]; 8] = [
    &["i'll"],
    &["i", "will"],
    &["let", "me"],
    &["i", "need", "to"],
    &["next", "i'll"],
    &["next,", "i'll"],
    &["next", "i", "will"],
    &["next,", "i", "will"],
];

/// What agents have tools for.
const VERBS: [&str; 19] = [
    "build", "call", "check", "create", "deploy", "edit", "execute", "fetch", "inspect", "look",
    "open", "read", "run", "search", "test", "update", "use", "verify", "write",
];

/// Chinese for "I will", "I first", "let me come and", "I need to", "I am about to".
const CHINESE_INTENT: [&str; 6] = ["将", "会", "先", "来", "需要", "正在"];

/// Chinese for "next", "now", "in what follows".
const CHINESE_NEXT: [&str; 3] = ["接下来", "现在", "下面"];

/// Chinese for "at once", "right away", "first", "come to".
const CHINESE_ADVERBS: [&str; 4] = ["立即", "马上", "先", "来"];

/// The verbs in Chinese.
const CHINESE_VERBS: [&str; 19] = [
    "运行", "执行", "检查", "查看", "读取", "编辑", "修改", "写入", "搜索", "打开", "调用", "使用",
    "测试", "验证", "构建", "部署", "创建", "更新", "获取",
];

/// `true` if `text` begins with the announcement of an action, marks of lists, headings and quotations
/// aside.
pub(super) fn is_announced(text: &str) -> bool {
    let mark = |c: char| c.is_whitespace() || matches!(c, '#' | '>' | '*' | '-');
    let text = text.trim_start_matches(mark);
    in_english(text) || in_chinese(text)
}

fn in_english(text: &str) -> bool {
    OPENERS.iter().any(|opener| {
        let mut words = text.split_whitespace();
        let opened = opener
            .iter()
            .all(|wanted| words.next().is_some_and(|word| is(word, wanted)));
        let next = words.next().filter(|_| opened);
        let verb = match next {
            Some(word) if is(word, "now") => words.next(),
            word => word,
        };
        verb.is_some_and(begins_with_verb)
    })
}

/// Whether `word` is `wanted`, in any case and with any apostrophe.
fn is(word: &str, wanted: &str) -> bool {
    let letters = word.chars().map(|c| match c {
        '’' => '\'',
        c => c.to_ascii_lowercase(),
    });
    letters.eq(wanted.chars())
}

fn begins_with_verb(word: &str) -> bool {
    let end = word.find(|c: char| !c.is_alphanumeric() && c != '_');
    let letters = word.get(..end.unwrap_or(word.len())).unwrap_or_default();
    VERBS.iter().any(|verb| letters.eq_ignore_ascii_case(verb))
}

fn in_chinese(text: &str) -> bool {
    let after_next = || {
        let rest = strip_any(text, &CHINESE_NEXT)?;
        let rest = rest.strip_prefix('我').unwrap_or(rest);
        Some(strip_any(rest, &CHINESE_INTENT).unwrap_or(rest))
    };
    let intent = || strip_any(text.strip_prefix('我')?, &CHINESE_INTENT);
    let plain = || strip_any(text, &["让我", "正在"]);
    let Some(rest) = after_next().or_else(intent).or_else(plain) else {
        return false;
    };
    let rest = strip_any(rest, &CHINESE_ADVERBS).unwrap_or(rest);
    strip_any(rest, &CHINESE_VERBS).is_some()
}

fn strip_any<'t>(text: &'t str, prefixes: &[&str]) -> Option<&'t str> {
    prefixes.iter().find_map(|prefix| text.strip_prefix(prefix))
}
