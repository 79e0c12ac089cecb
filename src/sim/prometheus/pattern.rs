//! Regular expressions, as far as queries use them: alternatives, groups, classes, repetition. The
//! whole text has to match. Anything else is refused by name rather than read differently.

use std::fmt;
use std::iter::Peekable;
use std::str::Chars;

/// Deepest nesting of groups.
const DEPTH: usize = 32;
/// Most instructions of a pattern.
const SIZE: usize = 4_096;

/// A pattern that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct InvalidPattern(String);

/// A compiled regular expression.
#[derive(Clone)]
pub(super) struct Pattern {
    text: String,
    program: Vec<Step>,
    groups: usize,
}

/// What matched: the text of the whole and of each group.
pub(super) type Captures<'t> = Vec<Option<&'t str>>;

#[derive(Debug, Clone)]
enum Step {
    One(Class),
    /// Goes on at the first place, and at the second if that fails.
    Fork(usize, usize),
    Go(usize),
    /// Notes the present place as beginning (even) or end (odd) of a group.
    Note(usize),
    End,
}

#[derive(Debug, Clone)]
struct Class {
    ranges: Vec<(char, char)>,
    negated: bool,
}

impl Class {
    fn of(letter: char) -> Self {
        Self::among(vec![(letter, letter)])
    }

    fn among(ranges: Vec<(char, char)>) -> Self {
        Self {
            ranges,
            negated: false,
        }
    }

    fn any() -> Self {
        Self {
            ranges: Vec::new(),
            negated: true,
        }
    }

    fn holds(&self, letter: char) -> bool {
        let inside = |(low, high): &(char, char)| (*low..=*high).contains(&letter);
        self.ranges.iter().any(inside) != self.negated
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Pattern").field(&self.text).finish()
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// What is wrong with it, or which part of it is not understood.
    pub(super) fn new(text: &str) -> Result<Self, InvalidPattern> {
        let mut reader = Reader {
            rest: text.chars().peekable(),
            groups: 0,
            depth: 0,
        };
        let body = reader.alternatives()?;
        if reader.rest.peek().is_some() {
            return Err(InvalidPattern("unexpected )".to_owned()));
        }
        let mut program = Vec::new();
        body.compile(&mut program)?;
        program.push(Step::End);
        Ok(Self {
            text: text.to_owned(),
            program,
            groups: reader.groups,
        })
    }

    /// Whether the whole text matches.
    pub(super) fn matches(&self, text: &str) -> bool {
        self.captures(text).is_some()
    }

    /// What the whole (at 0) and the groups matched, if the whole text matches. Every place of the
    /// pattern is tried at most once at every place of the text.
    pub(super) fn captures<'t>(&self, text: &'t str) -> Option<Captures<'t>> {
        let width = text.len() + 1;
        let mut tried = vec![false; self.program.len() * width];
        let mut open = vec![(0, 0, vec![None; 2 * self.groups])];
        while let Some((mut step, mut at, mut notes)) = open.pop() {
            loop {
                let place = tried.get_mut(step * width + at)?;
                if std::mem::replace(place, true) {
                    break;
                }
                match self.program.get(step)? {
                    Step::One(class) => match text.get(at..)?.chars().next() {
                        Some(letter) if class.holds(letter) => {
                            step += 1;
                            at += letter.len_utf8();
                        }
                        _ => break,
                    },
                    Step::Fork(first, second) => {
                        open.push((*second, at, notes.clone()));
                        step = *first;
                    }
                    Step::Go(target) => step = *target,
                    Step::Note(slot) => {
                        *notes.get_mut(*slot)? = Some(at);
                        step += 1;
                    }
                    Step::End if at == text.len() => return Some(captures(text, &notes)),
                    Step::End => break,
                }
            }
        }
        None
    }
}

fn captures<'t>(text: &'t str, notes: &[Option<usize>]) -> Captures<'t> {
    let group = |ends: &[Option<usize>]| match ends {
        [Some(start), Some(end)] => text.get(*start..*end),
        _ => None,
    };
    std::iter::once(Some(text))
        .chain(notes.chunks(2).map(group))
        .collect()
}

/// A part of a pattern.
#[derive(Debug, Clone)]
enum Node {
    One(Class),
    Row(Vec<Node>),
    Either(Vec<Node>),
    Group(usize, Box<Node>),
    Repeat(Box<Node>, Repetition),
}

#[derive(Debug, Clone, Copy)]
struct Repetition {
    least: usize,
    most: Option<usize>,
    greedy: bool,
}

impl Node {
    fn compile(&self, program: &mut Vec<Step>) -> Result<(), InvalidPattern> {
        if program.len() > SIZE {
            return Err(InvalidPattern("expression too large".to_owned()));
        }
        match self {
            Self::One(class) => program.push(Step::One(class.clone())),
            Self::Row(parts) => parts.iter().try_for_each(|part| part.compile(program))?,
            Self::Either(parts) => either(parts, program)?,
            Self::Group(number, body) => {
                program.push(Step::Note(2 * number));
                body.compile(program)?;
                program.push(Step::Note(2 * number + 1));
            }
            Self::Repeat(body, repetition) => repeat(body, *repetition, program)?,
        }
        Ok(())
    }
}

fn set(program: &mut [Step], place: usize, step: Step) {
    if let Some(found) = program.get_mut(place) {
        *found = step;
    }
}

fn either(parts: &[Node], program: &mut Vec<Step>) -> Result<(), InvalidPattern> {
    let mut ends = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let fork = program.len();
        let last = number + 1 == parts.len();
        if !last {
            program.push(Step::End);
        }
        part.compile(program)?;
        if !last {
            ends.push(program.len());
            program.push(Step::End);
            let next = program.len();
            set(program, fork, Step::Fork(fork + 1, next));
        }
    }
    let end = program.len();
    for place in ends {
        set(program, place, Step::Go(end));
    }
    Ok(())
}

fn repeat(body: &Node, times: Repetition, program: &mut Vec<Step>) -> Result<(), InvalidPattern> {
    let fork = |inside: usize, beyond: usize| {
        if times.greedy {
            Step::Fork(inside, beyond)
        } else {
            Step::Fork(beyond, inside)
        }
    };
    for _ in 0..times.least {
        body.compile(program)?;
    }
    match times.most {
        None => {
            let start = program.len();
            program.push(Step::End);
            body.compile(program)?;
            program.push(Step::Go(start));
            let beyond = program.len();
            set(program, start, fork(start + 1, beyond));
        }
        Some(most) => {
            let mut starts = Vec::new();
            for _ in times.least..most {
                starts.push(program.len());
                program.push(Step::End);
                body.compile(program)?;
            }
            let beyond = program.len();
            for start in starts {
                set(program, start, fork(start + 1, beyond));
            }
        }
    }
    Ok(())
}

struct Reader<'t> {
    rest: Peekable<Chars<'t>>,
    groups: usize,
    depth: usize,
}

impl Reader<'_> {
    fn alternatives(&mut self) -> Result<Node, InvalidPattern> {
        let mut parts = vec![self.row()?];
        while self.rest.next_if_eq(&'|').is_some() {
            parts.push(self.row()?);
        }
        Ok(Node::Either(parts))
    }

    fn row(&mut self) -> Result<Node, InvalidPattern> {
        let mut parts = Vec::new();
        while let Some(letter) = self.rest.next_if(|letter| !matches!(letter, '|' | ')')) {
            let part = match letter {
                '(' => self.group()?,
                '[' => Node::One(self.class()?),
                '.' => Node::One(Class::any()),
                '\\' => Node::One(self.escape()?),
                // The whole text has to match anyway.
                '^' if parts.is_empty() => continue,
                '$' if matches!(self.rest.peek(), None | Some('|' | ')')) => continue,
                '*' | '+' | '?' | '{' | '^' | '$' => {
                    return Err(InvalidPattern(format!("{letter:?} is not understood here")));
                }
                other => Node::One(Class::of(other)),
            };
            parts.push(self.repeated(part)?);
        }
        Ok(Node::Row(parts))
    }

    fn group(&mut self) -> Result<Node, InvalidPattern> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(InvalidPattern("expression nests too deeply".to_owned()));
        }
        let mut captured = true;
        if self.rest.next_if_eq(&'?').is_some() {
            if self.rest.next_if_eq(&':').is_none() {
                return Err(InvalidPattern("(? is only understood as (?:".to_owned()));
            }
            captured = false;
        }
        let number = self.groups;
        self.groups += usize::from(captured);
        let body = self.alternatives()?;
        if self.rest.next_if_eq(&')').is_none() {
            return Err(InvalidPattern("missing closing )".to_owned()));
        }
        self.depth -= 1;
        Ok(if captured {
            Node::Group(number, Box::new(body))
        } else {
            body
        })
    }

    fn repeated(&mut self, part: Node) -> Result<Node, InvalidPattern> {
        let times = |least, most| Repetition {
            least,
            most,
            greedy: true,
        };
        let mut repetition = match self.rest.peek() {
            Some('*') => times(0, None),
            Some('+') => times(1, None),
            Some('?') => times(0, Some(1)),
            Some('{') => {
                return Err(InvalidPattern("{n,m} is not understood".to_owned()));
            }
            _ => return Ok(part),
        };
        self.rest.next();
        repetition.greedy = self.rest.next_if_eq(&'?').is_none();
        // Repeating what may be empty would go round without moving; that is found by the marks of
        // what was tried.
        Ok(Node::Repeat(Box::new(part), repetition))
    }

    fn escape(&mut self) -> Result<Class, InvalidPattern> {
        let word = vec![('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')];
        match self.rest.next() {
            Some('d') => Ok(Class::among(vec![('0', '9')])),
            Some('w') => Ok(Class::among(word)),
            Some('n') => Ok(Class::of('\n')),
            Some('t') => Ok(Class::of('\t')),
            Some(letter) if letter.is_ascii_punctuation() => Ok(Class::of(letter)),
            Some(letter) => Err(InvalidPattern(format!("\\{letter} is not understood"))),
            None => Err(InvalidPattern("trailing backslash".to_owned())),
        }
    }

    fn class(&mut self) -> Result<Class, InvalidPattern> {
        let negated = self.rest.next_if_eq(&'^').is_some();
        let mut ranges = Vec::new();
        while let Some(letter) = self.rest.next() {
            let low = match letter {
                ']' if !ranges.is_empty() => return Ok(Class { ranges, negated }),
                '[' if self.rest.peek() == Some(&':') => {
                    return Err(InvalidPattern("[: is not understood".to_owned()));
                }
                '\\' => {
                    let escaped = self.escape()?.ranges;
                    match escaped.as_slice() {
                        [(low, high)] if low == high => *low,
                        _ => {
                            ranges.extend(escaped);
                            continue;
                        }
                    }
                }
                other => other,
            };
            let mut ahead = self.rest.clone();
            let range = ahead.next() == Some('-') && !matches!(ahead.next(), Some(']') | None);
            if !range {
                ranges.push((low, low));
                continue;
            }
            self.rest.next();
            match self.rest.next() {
                Some(high) if high >= low && high != '\\' => ranges.push((low, high)),
                _ => return Err(InvalidPattern("invalid character class range".to_owned())),
            }
        }
        Err(InvalidPattern("missing closing ]".to_owned()))
    }
}
