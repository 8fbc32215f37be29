//! The handlers of HBase's Thrift 2 service, `THBaseService`, by class.

mod admin;
mod reads;
mod writes;
