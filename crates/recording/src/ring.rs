//! The last cycles in memory.

use std::collections::VecDeque;

use super::segment::EncodedEntry;

/// Parts of the ring: a segment that is larger than one of them ends.
const PARTS: usize = 4;

/// Segments, oldest first, of at most so many bytes.
#[derive(Debug, Clone)]
pub struct DecisionRing {
    limit: usize,
    segments: VecDeque<Vec<u8>>,
    pub(super) bytes: usize,
}

impl DecisionRing {
    /// Holds at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, segments: VecDeque::new(), bytes: 0 }
    }

    /// Adds a cycle; the oldest segments go. Returns whether the encoder is to begin a segment, so that less goes at
    /// once.
    pub fn push(&mut self, cycle: &EncodedEntry) -> bool {
        // It is never to be whole here, and a file wants differences.
        if self.limit == 0 {
            return false;
        }
        if let Some(last) = self.segments.back_mut() {
            last.extend_from_slice(&cycle.ends);
            self.bytes = self.bytes.saturating_add(cycle.ends.len());
        }
        match self.segments.back_mut() {
            Some(last) if !cycle.begins_segment => last.extend_from_slice(&cycle.bytes),
            // What follows a segment that is gone cannot be read.
            None if !cycle.begins_segment => return true,
            _ => self.segments.push_back(cycle.bytes.clone()),
        }
        self.bytes = self.bytes.saturating_add(cycle.bytes.len());
        while self.bytes > self.limit {
            let Some(oldest) = self.segments.pop_front() else {
                break;
            };
            self.bytes = self.bytes.saturating_sub(oldest.len());
        }
        let last = self.segments.back().map_or(usize::MAX, Vec::len);
        last > self.limit / PARTS
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// All of it: a recording.
    pub fn recording(&self) -> Vec<u8> {
        let segments: Vec<&[u8]> = self.segments.iter().map(Vec::as_slice).collect();
        segments.concat()
    }
}
