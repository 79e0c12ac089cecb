//! Makes inputs: seeds of a grammar, changed token by token, line by line and byte by byte.

use std::ops::Range;

use wva_supervise::Generator;

/// Numbers at and beyond the edges of every type.
const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "1",
    "-1",
    "0.0",
    "-0.0",
    "1e-400",
    "5e-324",
    "1e308",
    "-1e308",
    "1e309",
    "1e999999999",
    "NaN",
    "nan",
    ".nan",
    "+Inf",
    "-Inf",
    ".inf",
    "-.inf",
    "inf",
    "255",
    "256",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "340282366920938463463374607431768211456",
    "0x7fffffff",
    "0b1",
    "0o17",
    "1_000",
    "1,5",
    "1.",
    ".5",
    "٣",
    "1e",
    "00000000000000000000000000000000000000001",
    "0.1000000000000000055511151231257827021181583404541015625",
    "99999999999999999999999999999h",
    "1s",
    "-1s",
    "1ns",
    "10y",
    "1M",
    "1Ki",
    "8k",
    "25.6K",
    "9223372036854775807G",
];

/// Words that mean something to some grammar.
const WORDS: &[&str] = &[
    "null",
    "~",
    "true",
    "false",
    "yes",
    "no",
    "on",
    "off",
    "default",
    "\"\"",
    "''",
    "{}",
    "[]",
    "&a",
    "*a",
    "<<: *a",
    "!!binary ",
    "!tag ",
    "|",
    ">-",
    "---",
    "...",
    "%YAML 1.2",
    "? ",
    "- ",
    ": ",
    " #",
    "\\u0000",
    "\\ud800",
    "\\x",
    "\\\"",
    "../../",
    "//",
    "%00",
    "%2B",
    "%",
    "+",
    "=",
    "==",
    "!=",
    "--",
    "$(A)",
    "`",
    "in (a,b)",
    "notin ()",
    "http://[::1]:99999",
    "\r\n",
    "\u{feff}",
    "\u{202e}",
    "\u{0}",
    "\u{7f}",
    "\u{85}",
    "\u{2028}",
    "é",
    "e\u{301}",
    "ß",
    "İ",
    "ﬀ",
    "\u{10ffff}",
    "😀",
    "日本語",
];

const OPENERS: &[(&str, &str)] = &[
    ("[", "]"),
    ("{", "}"),
    ("(", ")"),
    ("\"", "\""),
    ("{\"a\":", "}"),
    ("[[", "]]"),
    ("{a: ", "}"),
    ("- ", ""),
    ("? ", ""),
    ("'", "'"),
    ("\\", ""),
    ("!!a ", ""),
    ("&a ", ""),
    (" ", ""),
];

/// Most changes to one seed.
const MAX_CHANGES: u32 = 8;

/// What inputs of one grammar are made from.
#[derive(Debug)]
pub(crate) struct Grammar {
    seeds: Vec<Vec<u8>>,
    words: Vec<Vec<u8>>,
    longest: usize,
}

impl Grammar {
    /// From valid texts and further words of the grammar. Inputs have at most `longest` bytes, one in
    /// a thousand eight times that.
    pub(crate) fn new(
        seeds: impl IntoIterator<Item = String>,
        words: impl IntoIterator<Item = String>,
        longest: usize,
    ) -> Self {
        let seeds: Vec<Vec<u8>> = seeds.into_iter().map(String::into_bytes).collect();
        assert!(!seeds.is_empty(), "a grammar without seeds");
        let mut all: Vec<Vec<u8>> = words.into_iter().map(String::into_bytes).collect();
        for seed in &seeds {
            let mut at = 0;
            while at < seed.len() {
                let token = token_at(seed, at);
                at = token.end;
                all.push(seed[token].to_vec());
            }
        }
        all.sort();
        all.dedup();
        all.extend(WORDS.iter().map(|word| word.as_bytes().to_vec()));
        Self { seeds, words: all, longest }
    }

    /// One input; the same for the same state of the generator.
    pub(crate) fn input(&self, generator: &mut Generator) -> Vec<u8> {
        let mut chance = Chance(generator);
        let kind = chance.below(32);
        if kind == 0 {
            return self.soup(&mut chance);
        }
        let mut input = self.seed(&mut chance).to_vec();
        if kind < 3 {
            return input;
        }
        let longest = if chance.below(1000) == 0 { self.longest * 8 } else { self.longest };
        let changes = 1 + chance.0.next_u64().trailing_zeros().min(MAX_CHANGES - 1);
        for _ in 0..changes {
            self.change(&mut input, longest, &mut chance);
            input.truncate(longest);
        }
        input
    }

    fn seed(&self, chance: &mut Chance<'_>) -> &[u8] {
        &self.seeds[chance.below(self.seeds.len())]
    }

    fn word(&self, chance: &mut Chance<'_>) -> Vec<u8> {
        match chance.below(4) {
            0 => NUMBERS[chance.below(NUMBERS.len())].as_bytes().to_vec(),
            1 => vec![chance.byte()],
            _ => self.words[chance.below(self.words.len())].clone(),
        }
    }

    /// Words without any structure.
    fn soup(&self, chance: &mut Chance<'_>) -> Vec<u8> {
        let count = chance.below(40);
        (0..count).flat_map(|_| self.word(chance)).collect()
    }

    fn change(&self, input: &mut Vec<u8>, longest: usize, chance: &mut Chance<'_>) {
        let at = chance.below(input.len() + 1);
        let token = token_at(input, at);
        match chance.below(17) {
            0 if at < input.len() => input[at] = chance.byte(),
            1 if at < input.len() => input[at] ^= 1 << chance.below(8),
            2 | 3 => replace(input, token, &self.word(chance)),
            4 => replace(input, at..at, &self.word(chance)),
            5 => {
                let number = NUMBERS[chance.below(NUMBERS.len())];
                replace(input, number_near(input, at), number.as_bytes());
            }
            6 => {
                let end = token_at(input, chance.below(input.len() + 1)).end;
                replace(input, token.start.min(end)..end.max(token.start), b"");
            }
            7 => {
                let copies = input[token.clone()].repeat(1 + chance.below(3));
                replace(input, token.end..token.end, &copies);
            }
            8 => swap(input, token, chance),
            9 => self.splice(input, token.start, chance),
            10 => {
                let other = self.seed(chance);
                let from = chance.below(other.len() + 1);
                let part = token_at(other, from).start..chance.between(from, other.len());
                let part = other.get(part).unwrap_or_default().to_vec();
                replace(input, token.end..token.end, &part);
            }
            11 | 12 => lines(input, at, chance),
            13 => nest(input, at, longest, chance),
            14 => input.truncate(at),
            15 => repeat(input, token, longest, chance),
            _ => change_case(&mut input[token], chance),
        }
    }

    /// The start of one seed and the end of another.
    fn splice(&self, input: &mut Vec<u8>, at: usize, chance: &mut Chance<'_>) {
        let other = self.seed(chance);
        let from = token_at(other, chance.below(other.len() + 1)).start;
        input.truncate(at);
        input.extend_from_slice(&other[from..]);
    }
}

struct Chance<'a>(&'a mut Generator);

impl Chance<'_> {
    fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap();
        usize::try_from(self.0.next_u64() % end.max(1)).unwrap()
    }

    fn between(&mut self, first: usize, last: usize) -> usize {
        first + self.below(last.saturating_sub(first) + 1)
    }

    fn byte(&mut self) -> u8 {
        self.0.next_u64().to_le_bytes()[0]
    }
}

/// The token that holds the byte: a word or number, white space, or one sign.
fn token_at(text: &[u8], at: usize) -> Range<usize> {
    let kind = |byte: u8| match byte {
        b' ' | b'\t' => 1,
        byte if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.') || byte > 127 => 2,
        _ => 0,
    };
    let Some(own) = text.get(at).map(|byte| kind(*byte)) else {
        return text.len()..text.len();
    };
    if own == 0 {
        return at..at + 1;
    }
    let same = |byte: &u8| kind(*byte) == own;
    let start = at - text[..at].iter().rev().take_while(|byte| same(byte)).count();
    let end = at + text[at..].iter().take_while(|byte| same(byte)).count();
    start..end
}

/// The next token from here that is a number; else the place itself.
fn number_near(text: &[u8], at: usize) -> Range<usize> {
    let digit = text[at..].iter().position(u8::is_ascii_digit);
    digit.map_or(at..at, |digit| token_at(text, at + digit))
}

fn replace(input: &mut Vec<u8>, place: Range<usize>, by: &[u8]) {
    drop(input.splice(place, by.iter().copied()));
}

fn swap(input: &mut Vec<u8>, token: Range<usize>, chance: &mut Chance<'_>) {
    let other = token_at(input, chance.between(token.end, input.len()));
    if token.end <= other.start {
        let (first, second) = (input[token.clone()].to_vec(), input[other.clone()].to_vec());
        replace(input, other, &first);
        replace(input, token, &second);
    }
}

/// Doubles, drops, moves, indents or outdents the line.
fn lines(input: &mut Vec<u8>, at: usize, chance: &mut Chance<'_>) {
    let start = input[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let end =
        input[at..].iter().position(|byte| *byte == b'\n').map_or(input.len(), |end| at + end + 1);
    let line = input[start..end].to_vec();
    match chance.below(5) {
        0 => replace(input, end..end, &line),
        1 => replace(input, start..end, b""),
        2 => {
            replace(input, start..end, b"");
            let place = chance.below(input.len() + 1);
            replace(input, place..place, &line);
        }
        3 => replace(input, start..start, &b"        "[..=chance.below(8)]),
        _ => {
            let spaces = line.iter().take_while(|byte| **byte == b' ').count();
            replace(input, start..start + chance.below(spaces + 1), b"");
        }
    }
}

fn nest(input: &mut Vec<u8>, at: usize, longest: usize, chance: &mut Chance<'_>) {
    let (open, close) = OPENERS[chance.below(OPENERS.len())];
    let room = longest.saturating_sub(input.len()) / (open.len() + close.len());
    let most = [4, 40, 200, room][chance.below(4)].min(room);
    let depth = chance.below(most + 1);
    if chance.below(2) == 0 {
        let end = chance.between(at, input.len());
        replace(input, end..end, close.repeat(depth).as_bytes());
    }
    replace(input, at..at, open.repeat(depth).as_bytes());
}

fn repeat(input: &mut Vec<u8>, token: Range<usize>, longest: usize, chance: &mut Chance<'_>) {
    let end = chance.between(token.end, (token.end + 60).min(input.len()));
    let part = input[token.start..end].to_vec();
    let room = longest.saturating_sub(input.len()) / part.len().max(1);
    let most = [4, 40, room][chance.below(3)].min(room);
    let copies = part.repeat(chance.below(most + 1));
    replace(input, end..end, &copies);
}

fn change_case(token: &mut [u8], chance: &mut Chance<'_>) {
    if chance.below(2) == 0 {
        token.make_ascii_uppercase();
    } else {
        token.make_ascii_lowercase();
    }
}
