//! Short names for longer identities.

/// FNV-1a over the parts, each ended by a byte that occurs in no UTF-8 text, so that moving a
/// letter from one part to the next gives another result. The same on every machine and in every
/// release, unlike the hashes of the standard library.
pub fn fingerprint(parts: &[&str]) -> u64 {
    parts
        .iter()
        .flat_map(|part| part.bytes().chain([0xff]))
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
}

#[cfg(test)]
mod tests {
    use super::fingerprint;

    #[test]
    fn a_fingerprint_is_stable_and_separates_parts() {
        assert_eq!(fingerprint(&[]), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fingerprint(&["a"]), fingerprint(&["a"]));
        let different = [
            fingerprint(&["ab", "c"]),
            fingerprint(&["a", "bc"]),
            fingerprint(&["abc"]),
            fingerprint(&["abc", ""]),
        ];
        for (index, one) in different.iter().enumerate() {
            assert!(!different[index + 1..].contains(one));
        }
    }
}
