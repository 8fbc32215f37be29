//! Frames and verdicts of the Java host. The number before each is that of the parser in
//! `target::host_frames`.

use basalt_host::Writer;
use basalt_host::frame::{self, Kind};

use super::seed;
use crate::corpus::Input;

/// Seeds of `host_frames`.
pub(super) fn seeds() -> Vec<Input> {
    let framed = |kind, body: &[u8]| {
        let mut bytes = vec![0];
        frame::write(&mut bytes, kind, body).expect("it is small");
        bytes
    };
    let verdict = |build: &dyn Fn(&mut Writer)| {
        let mut body = Writer::new();
        build(&mut body);
        [&[1], body.as_slice()].concat()
    };
    vec![
        seed("hello", framed(Kind::Hello, &frame::VERSION.to_be_bytes())),
        seed("empty-ok", framed(Kind::Ok, b"")),
        seed("thrown", framed(Kind::Thrown, b"\x01\x00\0\0\0\x01E\0\0\0\x01m")),
        seed("claims-much", vec![0, 3, 0xff, 0xff, 0xff, 128]),
        seed(
            "nothing-passes",
            verdict(&|body| {
                body.u32(0).u8(0).u32(0).u8(0).u8(0);
            }),
        ),
        seed(
            "loaded-and-ended",
            verdict(&|body| {
                body.u32(1).bytes(b"org.example.F").bytes(b"/f.jar").bytes(b"00");
                body.u8(1).u32(0).u8(1).u8(0);
            }),
        ),
        seed(
            "rows-and-a-jump",
            verdict(&|body| {
                body.u32(0).u8(0).u32(2);
                body.u32(0).u32(1).u32(0);
                body.u32(1).u32(2).u32(0).u32(2);
                body.u8(0).u8(1).bytes(b"next");
            }),
        ),
        seed(
            "a-new-cell",
            verdict(&|body| {
                body.u32(0).u8(0).u32(1).u32(0).u32(1).u32(u32::MAX);
                let key = b"\0\x01a\x01fq\0\0\0\0\0\0\0\x01\x04";
                body.u32(8 + key.len() as u32 + 1)
                    .u32(key.len() as u32)
                    .u32(1)
                    .raw(key)
                    .raw(b"v");
                body.u8(0).u8(0);
            }),
        ),
    ]
}
