//! What goes over the Thrift port, and over HTTP where both are alike: speech, patience, and input that no client of good will
//! sends.

mod patience;
mod pinned;
mod speech;
