//! POSIX basic regular expressions, as `regcomp` without REG_EXTENDED takes them.
//!
//! slabinfo's operand is such a pattern, compared without regard to case and
//! anywhere in the name. It is translated for the `regex` crate: in a basic
//! expression `( ) { } + ? |` are ordinary characters and only their escaped
//! forms are operators (the escaped `+`, `?` and `|` are glibc's). Source of
//! truth: regex(7) and glibc's manual. Back references have no counterpart
//! and are refused; so are collating symbols of several characters.

use std::iter::Peekable;
use std::str::Chars;

use regex::{Regex, RegexBuilder};

/// A compiled pattern with the text it came from.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    text: String,
    regex: Regex,
}

impl Pattern {
    /// Compiles a basic regular expression. The error says why it cannot be.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let translated = translate(text)?;
        let regex = RegexBuilder::new(&translated)
            .case_insensitive(true)
            .dot_matches_new_line(true)
            .size_limit(1 << 20)
            .build()
            .map_err(|e| reason(&e))?;
        Ok(Self {
            text: text.to_owned(),
            regex,
        })
    }

    /// Whether some part of `name` matches.
    pub(crate) fn matches(&self, name: &str) -> bool {
        self.regex.is_match(name)
    }

    /// The pattern as it was given.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// The last line of a regex error; the lines before it draw the translation,
/// which nobody typed.
fn reason(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
        other => {
            let text = other.to_string();
            let last = text.lines().last().unwrap_or_default();
            last.trim_start_matches("error: ").to_owned()
        }
    }
}

fn translate(text: &str) -> Result<String, String> {
    let mut to = Translation::default();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => to.escaped(&mut chars)?,
            '[' => {
                let start = to.out.len();
                bracket(&mut chars, &mut to.out)?;
                to.atom = Some(start);
            }
            '.' => to.atom("."),
            '*' if to.atom.is_some() => to.repeat("*"),
            '^' if to.atom.is_none() => to.out.push('^'),
            '$' if at_end(&chars) => to.out.push('$'),
            c => to.literal(c),
        }
    }
    if to.groups.is_empty() {
        Ok(to.out)
    } else {
        Err("a \\( has no \\)".to_owned())
    }
}

/// Whether a `$` here is an anchor: at the end of the whole or of a part.
fn at_end(rest: &Peekable<Chars<'_>>) -> bool {
    let mut rest = rest.clone();
    match rest.next() {
        None => true,
        Some('\\') => matches!(rest.next(), Some(')' | '|')),
        Some(_) => false,
    }
}

#[derive(Default)]
struct Translation {
    out: String,
    /// Where the last thing that can be repeated starts. Without one, `*` is
    /// an ordinary character and `^` an anchor.
    atom: Option<usize>,
    /// Whether that thing has been repeated already.
    repeated: bool,
    /// Starts of the groups that are open.
    groups: Vec<usize>,
}

impl Translation {
    fn atom(&mut self, text: &str) {
        self.atom = Some(self.out.len());
        self.repeated = false;
        self.out.push_str(text);
    }

    fn literal(&mut self, c: char) {
        self.atom(&regex::escape(c.encode_utf8(&mut [0; 4])));
    }

    /// Something that matches a position: nothing to repeat.
    fn position(&mut self, text: &str) {
        self.atom = None;
        self.out.push_str(text);
    }

    fn repeat(&mut self, operator: &str) {
        let Some(start) = self.atom else { return };
        if self.repeated {
            if operator == "*" && self.out.ends_with('*') {
                return;
            }
            // `a*\?` must not become the crate's lazy `a*?`.
            self.out.insert_str(start, "(?:");
            self.out.push(')');
        }
        self.out.push_str(operator);
        self.repeated = true;
    }

    /// What follows a backslash.
    fn escaped(&mut self, chars: &mut Peekable<Chars<'_>>) -> Result<(), String> {
        let c = chars.next().ok_or("it ends in a backslash")?;
        match c {
            '(' => {
                self.groups.push(self.out.len());
                self.position("(?:");
            }
            ')' => {
                let start = self.groups.pop().ok_or("a \\) has no \\(")?;
                self.out.push(')');
                self.atom = Some(start);
                self.repeated = false;
            }
            '|' => self.position("|"),
            '{' if self.atom.is_none() => return Err("a \\{ has nothing to repeat".to_owned()),
            '{' => {
                let interval = interval(chars)?;
                self.repeat(&interval);
            }
            '+' if self.atom.is_some() => self.repeat("+"),
            '?' if self.atom.is_some() => self.repeat("?"),
            '1'..='9' => return Err(format!("back reference \\{c} is not supported")),
            'w' | 'W' | 's' | 'S' => self.atom(&format!("\\{c}")),
            'b' | 'B' => self.position(&format!("\\{c}")),
            '<' => self.position("\\b{start}"),
            '>' => self.position("\\b{end}"),
            '`' => self.position("\\A"),
            '\'' => self.position("\\z"),
            c => self.literal(c),
        }
        Ok(())
    }
}

fn interval(chars: &mut Peekable<Chars<'_>>) -> Result<String, String> {
    let mut body = String::new();
    loop {
        match chars.next() {
            Some('\\') if chars.peek() == Some(&'}') => {
                chars.next();
                break;
            }
            Some(c) if c.is_ascii_digit() || c == ',' => body.push(c),
            Some(_) => return Err("a \\{ holds something other than numbers".to_owned()),
            None => return Err("a \\{ has no \\}".to_owned()),
        }
    }
    let (low, high) = match body.split_once(',') {
        Some((low, "")) => (low, None),
        Some((low, high)) => (low, Some(high)),
        None => (&*body, Some(&*body)),
    };
    let number = |text: &str| text.parse::<u16>().map_err(|_| "a \\{ needs small numbers");
    let low = if low.is_empty() { 0 } else { number(low)? };
    Ok(match high {
        None => format!("{{{low},}}"),
        Some(high) => format!("{{{low},{}}}", number(high)?),
    })
}

/// A bracket expression: a backslash is an ordinary character in it, and a
/// `]` right after the opening is too.
fn bracket(chars: &mut Peekable<Chars<'_>>, out: &mut String) -> Result<(), String> {
    const OPEN: &str = "a [ has no ]";
    out.push('[');
    if chars.peek() == Some(&'^') {
        chars.next();
        out.push('^');
    }
    let mut first = true;
    loop {
        let c = chars.next().ok_or(OPEN)?;
        if c == ']' && !first {
            break;
        }
        first = false;
        if c == '[' && chars.peek() == Some(&':') {
            chars.next();
            out.push_str("[:");
            out.push_str(&class(chars, ':')?);
            out.push_str(":]");
            continue;
        }
        let low = member(c, chars)?;
        let mut ahead = chars.clone();
        let range = ahead.next() == Some('-') && ahead.peek().is_some_and(|c| *c != ']');
        in_bracket(low, out);
        if range {
            chars.next();
            let c = chars.next().ok_or(OPEN)?;
            let high = member(c, chars)?;
            out.push('-');
            in_bracket(high, out);
        }
    }
    out.push(']');
    Ok(())
}

/// One character of a bracket expression, written plainly or as `[.x.]` or `[=x=]`.
fn member(c: char, chars: &mut Peekable<Chars<'_>>) -> Result<char, String> {
    let mark = match (c, chars.peek()) {
        ('[', Some(mark @ ('.' | '='))) => *mark,
        _ => return Ok(c),
    };
    chars.next();
    let name = class(chars, mark)?;
    let mut inner = name.chars();
    match (inner.next(), inner.next()) {
        (Some(one), None) => Ok(one),
        _ => Err(format!("[{mark}{name}{mark}] is not supported")),
    }
}

fn class(chars: &mut Peekable<Chars<'_>>, mark: char) -> Result<String, String> {
    let mut name = String::new();
    loop {
        let c = chars.next().ok_or("a [ has no ]")?;
        if c == mark && chars.peek() == Some(&']') {
            chars.next();
            return Ok(name);
        }
        name.push(c);
    }
}

/// Every character that means something in the crate's classes is escaped,
/// among them `&`, `~` and `-`, which do in pairs.
fn in_bracket(c: char, out: &mut String) {
    if c.is_ascii_punctuation() {
        out.push('\\');
    }
    out.push(c);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        Pattern::new(pattern).unwrap().matches(name)
    }

    #[test]
    fn a_pattern_matches_anywhere_without_regard_to_case() {
        assert!(matches("inode", "ext4_INODE_cache"));
        assert!(matches("^kmalloc-64$", "kmalloc-64"));
        assert!(!matches("^kmalloc-64$", "dma-kmalloc-64"));
        assert!(matches("", "anything"));
    }

    #[test]
    fn unescaped_operators_of_other_dialects_are_plain_characters() {
        let cases = [
            ("a+b", "a+b", "aab"),
            ("a?b", "a?b", "b"),
            ("(x)", "(x)", "x"),
            ("a|b", "a|b", "a"),
            ("a{2}", "a{2}", "aa"),
            ("*x", "*x", "x"),
            ("^*x", "*x", "x"),
            ("a^b", "a^b", "ab"),
            ("a$b", "a$b", "ab"),
        ];
        for (pattern, yes, no) in cases {
            assert!(matches(pattern, yes), "{pattern} on {yes}");
            assert!(!matches(pattern, no), "{pattern} on {no}");
        }
    }

    #[test]
    fn escaped_operators_work() {
        let cases = [
            (r"^\(xfs\|ext4\)_", "ext4_inode", "btrfs_inode"),
            (r"^a\{2,3\}$", "aaa", "aaaa"),
            (r"^a\{,2\}$", "aa", "aaa"),
            (r"^ab\+$", "abb", "a"),
            (r"^ab\?$", "a", "abb"),
            (r"^\(ab\)*c$", "ababc", "abac"),
            (r"^a*\?b**$", "aabb", "c"),
            (r"\<inode\>", "an-inode-x", "an_inode"),
            (r"\.", "a.b", "ab"),
            (r"^a$\|^b$", "b", "ab"),
        ];
        for (pattern, yes, no) in cases {
            assert!(matches(pattern, yes), "{pattern} on {yes}");
            assert!(!matches(pattern, no), "{pattern} on {no}");
        }
    }

    #[test]
    fn brackets_follow_posix() {
        let cases = [
            ("^[]x]$", "]", "y"),
            ("^[^]x]$", "y", "]"),
            (r"^[\d]$", r"\", "5"),
            ("^[[:digit:]_]*$", "1_2", "1a"),
            ("^kmalloc-[0-9]*k$", "kmalloc-8k", "kmalloc-x8k"),
            ("^[a&&b~~]$", "&", "c"),
            ("^[-a]$", "-", "b"),
            ("^[a-]$", "-", "b"),
            ("^[[.-.]x]$", "-", "."),
        ];
        for (pattern, yes, no) in cases {
            assert!(matches(pattern, yes), "{pattern} on {yes}");
            assert!(!matches(pattern, no), "{pattern} on {no}");
        }
    }

    #[test]
    fn a_wrong_pattern_says_why() {
        let cases = [
            (r"\(a", r"a \( has no \)"),
            (r"a\)", r"a \) has no \("),
            ("[a", "a [ has no ]"),
            (r"\(a\)\1", r"back reference \1 is not supported"),
            (r"a\", "it ends in a backslash"),
            (r"a\{x\}", r"a \{ holds something other than numbers"),
            (r"\{2\}", r"a \{ has nothing to repeat"),
        ];
        for (pattern, why) in cases {
            assert_eq!(Pattern::new(pattern).unwrap_err(), why, "{pattern}");
        }
        let large = r"\(x\{9999\}\)\{9999\}";
        assert_eq!(Pattern::new(large).unwrap_err(), "it is too large");
    }

    proptest! {
        #[test]
        fn no_pattern_panics(text in r"([\\a\[\]().*^$|{}+?1:=,-]|\\PC){0,40}") {
            if let Ok(pattern) = Pattern::new(&text) {
                pattern.matches("ext4_inode_cache");
            }
        }

        #[test]
        fn an_escaped_name_finds_itself(name in r"[a-zA-Z0-9_:.+()?{}|-]{1,20}") {
            let escaped = name.replace('.', r"\.");
            let pattern = format!("^{escaped}$");
            prop_assert!(matches(&pattern, &name), "{}", pattern);
        }
    }
}
