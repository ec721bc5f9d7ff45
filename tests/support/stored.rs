//! Dumps as they are stored: compressed, in archives, piped.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::io::Write;
use std::process::Stdio;

use crate::support::{Report, Run, rdbscope};

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("memory takes it")
}

/// In linked blocks of 64 KiB, as Valkey writes them.
pub fn lz4(bytes: &[u8]) -> Vec<u8> {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    let form = FrameInfo::new().block_size(BlockSize::Max64KB).block_mode(BlockMode::Linked).content_checksum(true);
    let mut encoder = FrameEncoder::with_frame_info(form, Vec::new());
    encoder.write_all(bytes).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

pub fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

pub fn xz(bytes: &[u8]) -> Vec<u8> {
    let options = lzma_rust2::XzOptions::with_preset(1);
    let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options).expect("a preset");
    encoder.write_all(bytes).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

/// Valkey's envelope: seven bytes and one frame of LZ4.
pub fn envelope(bytes: &[u8]) -> Vec<u8> {
    [&b"VCS\x01\x01\0\x01"[..], &lz4(bytes)].concat()
}

/// A frame without data in it, which both zstd and LZ4 pass over.
pub fn skippable(content: &[u8]) -> Vec<u8> {
    [&[0x53, 0x2a, 0x4d, 0x18][..], &(content.len() as u32).to_le_bytes(), content].concat()
}

/// An archive of members with their names and times in Unix seconds.
pub fn tar(members: &[(&str, u64, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, modified, bytes) in members {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_mtime(*modified);
        header.set_size(bytes.len() as u64);
        builder.append_data(&mut header, name, *bytes).expect("memory takes it");
    }
    builder.into_inner().expect("memory takes it")
}

/// Runs the program with `bytes` on standard input.
pub fn piped(bytes: &[u8], arguments: &[&str]) -> Run {
    let mut command = rdbscope();
    let mut child = command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    std::thread::scope(|scope| {
        // A program that has seen enough closes the pipe.
        scope.spawn(move || drop(stdin.write_all(bytes)));
        let output = child.wait_with_output().expect("the program ends");
        let stderr = String::from_utf8(output.stderr).expect("messages are UTF-8");
        assert!(!stderr.contains("panicked"), "{stderr}");
        Run { code: output.status.code().expect("the program exits"), stdout: output.stdout, stderr }
    })
}

/// What `report -o` with `arguments` writes of `bytes` on standard input.
pub fn report_of_piped(bytes: &[u8], arguments: &[&str]) -> Report {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let to = folder.path().to_str().expect("temporary folders have names").to_string();
    let run = piped(bytes, &[&["report", "-", "-o", &to], arguments].concat());
    Report::read(run, folder.path())
}
