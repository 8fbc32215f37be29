//! What Basalt and a real HBase do alike: answers, files, and the page that says so. One program, so that
//! the waits of its JVMs overlap.

mod cases;
mod compatibility;
mod differential;
mod hfile_interop;
mod oracle;
