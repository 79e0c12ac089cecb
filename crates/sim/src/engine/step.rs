//! What a server does in one step, and in a run of equal ones.

use super::batch::Left;
use super::request::{RequestEnd, Sequence};
use super::server::Engine;
use super::timing::Picoseconds;

#[derive(Debug, Clone)]
pub(super) struct Prefilling {
    order: u64,
    sequence: Sequence,
    private: u32,
    /// Tokens that are neither computed nor cached.
    missing: u32,
    chunk: u32,
}

impl Prefilling {
    pub(super) fn left(self) -> Left {
        Left { sequence: self.sequence, private: self.private }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct EngineStep {
    pub(super) end: Picoseconds,
    pub(super) decoding: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    Enough,
    Made,
}

impl Engine {
    /// Starts the next step; steps that only decode are done at once as far as they end by `to`, and the one after them
    /// is started.
    pub(super) fn begin_step(&mut self, to: Picoseconds) {
        let room = self.make_room();
        let prompt_tokens = self.schedule_prompts(room);
        let decoding = u64::try_from(self.batch.len()).unwrap_or(u64::MAX);
        if prompt_tokens > 0 {
            let context = self.batch.context;
            let timing = &self.profile.timing;
            let length = timing.mixed(decoding, context, u64::from(prompt_tokens));
            self.kv.grow(self.batch.blocks_for(1));
            self.step = Some(EngineStep { end: self.now.plus(length), decoding });
            return;
        }
        let Some(first_end) = self.batch.first_end() else {
            // Nothing can start; a request that could never fit was refused, so this is not reached.
            self.now = to;
            return;
        };
        // After a preemption the queue is looked at again in the next step, not in this one.
        let limit = match room {
            Room::Enough => first_end,
            Room::Made => 1,
        };
        let run = self.profile.timing.decode(decoding, self.batch.context);
        let fitting = run.fitting(to.since(self.now), limit);
        let possible = self.batch.steps_within(self.kv.available(), limit.min(fitting + 1));
        let steps = fitting.min(possible);
        let end = self.now.plus(run.total(steps));
        // Where time alone ends a run, no request is done and the queue has no more room than before.
        let begins = possible > steps && end < to;
        self.kv.grow(self.batch.blocks_for(steps + u64::from(begins)));
        if steps > 0 {
            self.statistics.decoded(run, steps, decoding);
            self.now = end;
            self.decode(steps);
        }
        if begins {
            self.step = Some(EngineStep { end: end.plus(run.step(steps)), decoding });
        }
    }

    /// Ends the step in flight: everyone who decoded has one more token, and who got to the end of
    /// the prompt its first.
    pub(super) fn end_step(&mut self, step: EngineStep) {
        let length = step.end.since(self.now);
        self.statistics.stepped(length, step.decoding);
        self.now = step.end;
        self.decode(1);
        for mut prefilling in std::mem::take(&mut self.prefilling) {
            prefilling.missing -= prefilling.chunk;
            prefilling.chunk = 0;
            if prefilling.missing > 0 {
                self.prefilling.push_back(prefilling);
            } else {
                self.first_token(prefilling);
            }
        }
    }

    fn decode(&mut self, steps: u64) {
        let now = self.now;
        for Left { mut sequence, private } in self.batch.decode(steps) {
            sequence.last_token = Some(now);
            self.kv.release(&sequence.request, private);
            self.complete(&sequence, RequestEnd::Finished, now);
        }
    }

    fn first_token(&mut self, prefilling: Prefilling) {
        let Prefilling { order, mut sequence, private, .. } = prefilling;
        let tokens = sequence.prefill_tokens();
        self.statistics.prefilled(&sequence, self.now);
        sequence.first_token.get_or_insert(self.now);
        sequence.last_token = Some(self.now);
        sequence.generated += 1;
        if sequence.generated == sequence.request.output_tokens {
            self.kv.release(&sequence.request, private);
            self.complete(&sequence, RequestEnd::Finished, self.now);
        } else {
            self.batch.join(order, sequence, tokens, private);
        }
    }

    /// Sends the youngest back to the queue until the next step has the blocks it needs.
    fn make_room(&mut self) -> Room {
        let mut room = Room::Enough;
        while self.batch.blocks_for(1) > self.kv.available() {
            let computing = self.prefilling.pop_back().map(Prefilling::left);
            let Some(left) = computing.or_else(|| self.batch.remove_youngest()) else {
                break;
            };
            room = Room::Made;
            self.kv.release(&left.sequence.request, left.private);
            let mut sequence = left.sequence;
            if sequence.generated > 0 {
                sequence.last_token = Some(self.now);
            }
            sequence.preemptions += 1;
            self.statistics.preemptions += 1;
            self.waiting.push_front(sequence);
        }
        room
    }

    /// Gives the step's free tokens to prompts, first to those begun, then to the queue; how many
    /// tokens they take.
    fn schedule_prompts(&mut self, room: Room) -> u32 {
        let decoding = u32::try_from(self.batch.len()).unwrap_or(u32::MAX);
        let budget = self.limits.max_num_batched_tokens.saturating_sub(decoding);
        let mut free = budget;
        for prefilling in &mut self.prefilling {
            prefilling.chunk = prefilling.missing.min(free);
            free -= prefilling.chunk;
        }
        let most = usize::try_from(self.limits.max_num_seqs).unwrap_or(usize::MAX);
        while room == Room::Enough && free > 0 && self.running() < most {
            let Some(mut prefilling) = self.admit() else {
                break;
            };
            prefilling.chunk = prefilling.missing.min(free);
            free -= prefilling.chunk;
            self.prefilling.push_back(prefilling);
        }
        budget - free
    }

    /// Takes the head of the queue if the KV cache has room for its prompt.
    fn admit(&mut self) -> Option<Prefilling> {
        let head = self.waiting.front()?;
        let tokens = head.prefill_tokens();
        // The step's own growth is set aside before the queue gets any block.
        let reserved = self.batch.blocks_for(1);
        let claim = self.kv.claim(&head.request, tokens, reserved)?;
        let mut sequence = self.waiting.pop_front()?;
        if sequence.admitted.is_none() {
            sequence.admitted = Some(self.now);
            sequence.cached = claim.cached;
            self.statistics.admitted(&sequence);
        }
        self.admissions += 1;
        Some(Prefilling {
            order: self.admissions,
            missing: sequence.missing(tokens, claim.cached),
            sequence,
            private: claim.private,
            chunk: 0,
        })
    }
}
