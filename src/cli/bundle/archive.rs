//! Archives: tar in the form of POSIX, compressed.

use std::fs::File;
use std::io::{self, BufReader, Read, Write as _};

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;

pub(in crate::cli) const RECORDING: &str = "recording.jsonl.gz";

const BLOCK: usize = 512;

const ENTRIES: usize = 1000;

#[derive(Debug, Default)]
pub(super) struct ArchiveWriter(Vec<u8>);

impl ArchiveWriter {
    /// Adds a file, whose name is shorter than 100 bytes.
    pub(super) fn add(&mut self, name: &str, content: &[u8]) {
        let size = content.len();
        let mut header = Vec::with_capacity(BLOCK);
        let mut field = |text: &str, width: usize| {
            let end = header.len().saturating_add(width);
            header.extend(text.bytes().take(width));
            header.resize(end, 0);
        };
        field(name, 100);
        field("0000644\0", 8);
        field("0000000\0", 8);
        field("0000000\0", 8);
        field(&format!("{size:011o}\0"), 12);
        field("00000000000\0", 12);
        // The sum counts its own field as spaces.
        field("        ", 8);
        field("0", 1);
        field("", 100);
        field("ustar\0", 6);
        field("00", 2);
        field("", 247);
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        if let Some(place) = header.get_mut(148..156) {
            place.copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
        self.0.extend(header);
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(BLOCK), 0);
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.0.resize(self.0.len().saturating_add(2 * BLOCK), 0);
        let mut writer = GzEncoder::new(Vec::new(), Compression::default());
        // Nothing fails in memory.
        writer.write_all(&self.0).unwrap_or_default();
        writer.finish().unwrap_or_default()
    }
}

/// Opens a recording: the file itself, or the one in a bundle.
///
/// # Errors
/// The file cannot be read, or is a bundle without a recording.
pub(in crate::cli) fn open(path: &str) -> Result<Box<dyn Read>, String> {
    let opened = || {
        File::open(path).map_err(|error| format!("{path}: {error}; name a file that can be read"))
    };
    let mut archive = GzDecoder::new(BufReader::new(opened()?));
    let mut is_archive = false;
    for _ in 0..ENTRIES {
        let Some((name, size)) = entry(&mut archive) else {
            break;
        };
        is_archive = true;
        if name == RECORDING.as_bytes() {
            return Ok(Box::new(archive.take(size)));
        }
        let padded = size.next_multiple_of(512);
        let skipped = io::copy(&mut (&mut archive).take(padded), &mut io::sink());
        if skipped.ok() != Some(padded) {
            break;
        }
    }
    if is_archive {
        return Err(format!(
            "{path}: the bundle has no recording; make one with --address or --recording"
        ));
    }
    // A recording; what is neither is named by its reader.
    Ok(Box::new(opened()?))
}

/// Name and size of the next file; `None` at the end, and where the bytes are no archive.
fn entry(archive: &mut impl Read) -> Option<(Vec<u8>, u64)> {
    let mut block = [0; BLOCK];
    archive.read_exact(&mut block).ok()?;
    if block.get(257..262)? != b"ustar" {
        return None;
    }
    let name = block.get(..100)?.split(|byte| *byte == 0).next()?;
    Some((name.to_owned(), octal(block.get(124..136)?)?))
}

fn octal(field: &[u8]) -> Option<u64> {
    let digits: String = field
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .map(|byte| char::from(*byte))
        .collect();
    u64::from_str_radix(&digits, 8).ok()
}
