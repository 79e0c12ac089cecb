//! The only source of randomness.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// A seed from which every consumer derives a generator of its own by name, so that one more draw
/// in one place changes nothing in another.
#[derive(Debug, Clone)]
pub struct SeedTree {
    seed: u64,
}

impl SeedTree {
    /// Everything drawn below follows from this number.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// A seed from the system's entropy.
    pub fn from_entropy() -> Self {
        Self::new(RandomState::new().build_hasher().finish())
    }

    /// The generator of this name; the same one for the same name, however often it is asked for.
    pub fn child(&self, name: &str) -> Generator {
        // FNV-1a, https://datatracker.ietf.org/doc/html/draft-eastlake-fnv: stable over versions
        // of Rust, unlike the standard hasher.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mut parent = Generator { state: self.seed };
        Generator { state: parent.next_u64() ^ hash }
    }
}

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). Spreads
/// load; keeps no secrets.
#[derive(Debug, Clone)]
pub struct Generator {
    state: u64,
}

impl Generator {
    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// `base` ± up to `share` of it, evenly spread; `share` is taken to lie within 0 and 1.
    pub fn jitter(&mut self, base: Duration, share: f64) -> Duration {
        let factor = 1.0 + share.clamp(0.0, 1.0) * (2.0 * self.unit() - 1.0);
        Duration::try_from_secs_f64(base.as_secs_f64() * factor).unwrap_or(base)
    }

    /// `base` less up to `share` of it, evenly spread: for what must not come later.
    pub fn shorten(&mut self, base: Duration, share: f64) -> Duration {
        let factor = 1.0 - share.clamp(0.0, 1.0) * self.unit();
        let shortened = Duration::try_from_secs_f64(base.as_secs_f64() * factor);
        shortened.map_or(base, |shortened| shortened.min(base))
    }

    /// Evenly spread over 0 to 1.
    fn unit(&mut self) -> f64 {
        let high_half = u32::try_from(self.next_u64() >> 32).unwrap_or(u32::MAX);
        f64::from(high_half) / f64::from(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn draws_the_published_sequence() {
        // The reference implementation's first numbers for the seed 1234567.
        let mut generator = Generator { state: 1_234_567 };
        let drawn: Vec<u64> = (0..3).map(|_| generator.next_u64()).collect();
        assert_eq!(
            drawn,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn a_child_depends_on_seed_and_name_alone() {
        let draw = |seed, name: &str| SeedTree::new(seed).child(name).next_u64();
        assert_eq!(draw(7, "ingress"), draw(7, "ingress"));
        assert_ne!(draw(7, "ingress"), draw(7, "egress"));
        assert_ne!(draw(7, "ingress"), draw(8, "ingress"));
    }

    #[test]
    fn entropy_differs_between_processes_and_calls() {
        let draw = || SeedTree::from_entropy().child("a").next_u64();
        assert_ne!(draw(), draw());
    }

    proptest! {
        #[test]
        fn jitter_stays_within_its_share(seed: u64, millis in 0_u64..86_400_000, share in 0.0..1.0_f64) {
            let base = Duration::from_millis(millis);
            let drawn = SeedTree::new(seed).child("jitter").jitter(base, share).as_secs_f64();
            let (low, high) = (base.as_secs_f64() * (1.0 - share), base.as_secs_f64() * (1.0 + share));
            prop_assert!(drawn >= low - 1e-6 && drawn <= high + 1e-6, "{drawn} not in {low}..{high}");
        }

        #[test]
        fn what_is_shortened_is_never_longer(seed: u64, millis in 0_u64..86_400_000, share in 0.0..1.0_f64) {
            let base = Duration::from_millis(millis);
            let drawn = SeedTree::new(seed).child("jitter").shorten(base, share);
            let low = base.as_secs_f64() * (1.0 - share);
            prop_assert!(drawn <= base && drawn.as_secs_f64() >= low - 1e-6, "{drawn:?} not in {low}..{base:?}");
        }

        #[test]
        fn jitter_never_panics(seed: u64, nanos: u64, share: f64) {
            let _ = SeedTree::new(seed).child("jitter").jitter(Duration::from_secs(nanos), share);
            let _ = SeedTree::new(seed).child("jitter").shorten(Duration::from_secs(nanos), share);
        }
    }
}
