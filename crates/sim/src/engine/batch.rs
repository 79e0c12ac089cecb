//! The sequences that decode together, kept so that a run of many equal steps costs as much as one.

use std::collections::BTreeMap;

use super::request::Sequence;

#[derive(Debug, Clone, Default)]
pub(super) struct Batch {
    steps: u64,
    /// By the step that ends them, then by the order in which they were taken from the queue.
    members: BTreeMap<(u64, u64), Member>,
    pub(super) context: u64,
    /// How many members need one more block before the step whose number leaves this remainder when
    /// divided by the block size.
    growing: Vec<u32>,
}

#[derive(Debug, Clone)]
struct Member {
    sequence: Sequence,
    joined: u64,
    tokens: u32,
    /// Blocks it held then, apart from shared ones.
    private: u32,
}

#[derive(Debug)]
pub(super) struct Left {
    pub(super) sequence: Sequence,
    pub(super) private: u32,
}

impl Batch {
    pub(super) fn new(block_size: u32) -> Self {
        Self {
            growing: vec![0; usize::try_from(block_size.max(1)).unwrap_or(1)],
            ..Self::default()
        }
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// Steps until the first member is done; none without members.
    pub(super) fn first_end(&self) -> Option<u64> {
        let ((end, _), _) = self.members.first_key_value()?;
        Some(end.saturating_sub(self.steps))
    }

    pub(super) fn join(&mut self, order: u64, sequence: Sequence, tokens: u32, private: u32) {
        let missing = sequence.request.output_tokens - sequence.generated;
        let end = self.steps + u64::from(missing);
        self.context += u64::from(tokens);
        let member = Member { sequence, joined: self.steps, tokens, private };
        if let Some(count) = self.growing_with(&member) {
            *count += 1;
        }
        self.members.insert((end, order), member);
    }

    fn growing_with(&mut self, member: &Member) -> Option<&mut u32> {
        let size = u64::try_from(self.growing.len()).unwrap_or(1);
        let phase = (member.joined % size + size - u64::from(member.tokens) % size) % size;
        self.growing.get_mut(usize::try_from(phase).ok()?)
    }

    fn growing_at(&self, step: u64) -> u32 {
        let size = u64::try_from(self.growing.len()).unwrap_or(1);
        let phase = usize::try_from(step % size).unwrap_or_default();
        self.growing.get(phase).copied().unwrap_or_default()
    }

    pub(super) fn blocks_for(&self, steps: u64) -> u32 {
        let size = u64::try_from(self.growing.len()).unwrap_or(1);
        let whole = (steps / size).saturating_mul(self.count());
        let rest: u32 = (0..steps % size).map(|step| self.growing_at(self.steps + step)).sum();
        u32::try_from(whole).unwrap_or(u32::MAX).saturating_add(rest)
    }

    pub(super) fn steps_within(&self, blocks: u32, limit: u64) -> u64 {
        let size = u64::try_from(self.growing.len()).unwrap_or(1);
        // Every member needs one block in as many steps as a block has tokens.
        if limit.div_ceil(size).saturating_mul(self.count()) <= u64::from(blocks) {
            return limit;
        }
        let rounds = u64::from(blocks) / self.count().max(1);
        let mut steps = rounds.saturating_mul(size).min(limit);
        let mut left = blocks.saturating_sub(self.blocks_for(steps));
        while steps < limit {
            let needed = self.growing_at(self.steps + steps);
            if needed > left {
                break;
            }
            left -= needed;
            steps += 1;
        }
        steps
    }

    fn count(&self) -> u64 {
        u64::try_from(self.members.len()).unwrap_or(u64::MAX)
    }

    /// Does so many steps, no more than to the first end; who is done leaves.
    pub(super) fn decode(&mut self, steps: u64) -> Vec<Left> {
        self.context += steps.saturating_mul(self.count());
        self.steps += steps;
        let mut done = Vec::new();
        while let Some(first) = self.members.first_entry().filter(|one| one.key().0 <= self.steps) {
            let member = first.remove();
            done.push(self.left(member));
        }
        done
    }

    pub(super) fn remove_youngest(&mut self) -> Option<Left> {
        let youngest = *self.members.keys().max_by_key(|(_, order)| *order)?;
        let member = self.members.remove(&youngest)?;
        Some(self.left(member))
    }

    /// What a member that is one no longer takes along.
    fn left(&mut self, member: Member) -> Left {
        if let Some(count) = self.growing_with(&member) {
            *count -= 1;
        }
        let gained = u32::try_from(self.steps - member.joined).unwrap_or(u32::MAX);
        let tokens = member.tokens.saturating_add(gained);
        self.context -= u64::from(tokens);
        let size = u32::try_from(self.growing.len()).unwrap_or(1);
        let grown = tokens.div_ceil(size) - member.tokens.div_ceil(size);
        let mut sequence = member.sequence;
        sequence.generated += gained;
        Left { sequence, private: member.private + grown }
    }
}
