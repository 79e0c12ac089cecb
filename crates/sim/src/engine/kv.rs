//! The paged KV cache, and in it the blocks that prompts share.

use std::collections::BTreeMap;

use super::request::Request;

/// Blocks of KV cache. Every block is held by one sequence, shared by several, kept for later
/// (evictable), or empty.
#[derive(Debug, Clone, Default)]
pub(crate) struct KvPool {
    pub(super) capacity: u32,
    pub(super) block_size: u32,
    private: u32,
    shared: u32,
    /// In pieces that no request holds; given up, the least recently used first, when room is needed.
    pub(super) kept: u32,
    /// By id and size, as an id means nothing apart from the size of its pieces.
    pieces: BTreeMap<Key, Piece>,
    /// Pieces that no request holds, by when they were let go.
    idle: BTreeMap<u64, Key>,
    releases: u64,
}

type Key = (u64, u32);

#[derive(Debug, Clone, Copy, Default)]
struct Piece {
    holders: u32,
    released: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CacheClaim {
    pub(super) cached: u32,
    pub(super) private: u32,
}

impl KvPool {
    pub(crate) fn new(tokens: u32, block_size: u32) -> Self {
        let block_size = block_size.max(1);
        Self { capacity: tokens / block_size, block_size, ..Self::default() }
    }

    pub(crate) fn used(&self) -> u32 {
        self.private + self.shared
    }

    pub(crate) fn available(&self) -> u32 {
        self.capacity.saturating_sub(self.used())
    }

    pub(crate) fn usage(&self) -> f64 {
        f64::from(self.used()) / f64::from(self.capacity.max(1))
    }

    pub(crate) fn lookup(&self, request: &Request) -> u32 {
        let (ids, tokens, blocks) = self.sharable(request);
        let found = ids.iter().take_while(|id| self.pieces.contains_key(&(**id, blocks)));
        whole(found.count()).saturating_mul(tokens)
    }

    pub(super) fn blocks_for(&self, tokens: u32) -> u32 {
        tokens.div_ceil(self.block_size)
    }

    /// Takes what `tokens` tokens of a request need, prompt first, and uses again what is there; none
    /// if that would leave fewer than `reserved` blocks.
    pub(super) fn claim(
        &mut self,
        request: &Request,
        tokens: u32,
        reserved: u32,
    ) -> Option<CacheClaim> {
        let (ids, piece_tokens, piece_blocks) = self.sharable(request);
        let known = |id: &u64| self.pieces.get(&(*id, piece_blocks));
        let found = whole(ids.iter().map_while(known).count());
        let held = ids.iter().map_while(known).filter(|piece| piece.holders > 0);
        let held = whole(held.count());
        let pieces = whole(ids.len());
        let rest = tokens.saturating_sub(pieces.saturating_mul(piece_tokens));
        let private = self.blocks_for(rest);
        let needed =
            pieces.saturating_sub(held).saturating_mul(piece_blocks).saturating_add(private);
        if needed.saturating_add(reserved) > self.available() {
            return None;
        }
        for id in ids {
            self.hold((*id, piece_blocks));
        }
        self.private += private;
        self.evict();
        Some(CacheClaim {
            // The last token is always computed: its output is what comes next.
            cached: found.saturating_mul(piece_tokens).min(tokens.saturating_sub(1)),
            private,
        })
    }

    pub(super) fn grow(&mut self, blocks: u32) {
        self.private += blocks;
        self.evict();
    }

    pub(super) fn release(&mut self, request: &Request, private: u32) {
        self.private = self.private.saturating_sub(private);
        let (ids, _, blocks) = self.sharable(request);
        // The tail of a prompt goes first: it is of use to fewer.
        for id in ids.iter().rev() {
            let key = (*id, blocks);
            let Some(piece) = self.pieces.get_mut(&key) else {
                continue;
            };
            piece.holders = piece.holders.saturating_sub(1);
            if piece.holders == 0 {
                self.releases += 1;
                piece.released = self.releases;
                self.shared = self.shared.saturating_sub(blocks);
                self.kept += blocks;
                self.idle.insert(self.releases, key);
            }
        }
    }

    /// Pieces of a prompt that fill whole blocks, with the tokens and blocks of one.
    fn sharable<'a>(&self, request: &'a Request) -> (&'a [u64], u32, u32) {
        let Some(prefix) = &request.prefix else {
            return (&[], 0, 0);
        };
        let blocks = prefix.tokens_per_id / self.block_size;
        let tokens = blocks * self.block_size;
        let full = request.prompt_tokens.checked_div(tokens).unwrap_or(0);
        let full = usize::try_from(full).unwrap_or(usize::MAX);
        let full = full.min(prefix.ids.len());
        (prefix.ids.get(..full).unwrap_or_default(), tokens, blocks)
    }

    fn hold(&mut self, key: Key) {
        let (_, blocks) = key;
        let known = self.pieces.contains_key(&key);
        let piece = self.pieces.entry(key).or_default();
        if piece.holders == 0 {
            self.shared += blocks;
            if known {
                self.idle.remove(&piece.released);
                self.kept = self.kept.saturating_sub(blocks);
            }
        }
        piece.holders += 1;
    }

    fn evict(&mut self) {
        while self.kept > self.available() {
            let Some((_, key)) = self.idle.pop_first() else {
                return;
            };
            self.pieces.remove(&key);
            self.kept = self.kept.saturating_sub(key.1);
        }
    }
}

fn whole(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
