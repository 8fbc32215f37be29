//! Goal: nothing that a client can send makes a function panic, and errors are one line. Method: bytes and
//! texts by chance, and mutations of bodies that are right.

use basalt_rest::encoding::Encoding;
use basalt_rest::media::Media;
use basalt_rest::model::cells;
use basalt_rest::model::namespace::Properties;
use basalt_rest::model::scanner::ScannerModel;
use basalt_rest::model::schema::TableSchema;
use basalt_rest::query::Query;
use basalt_rest::route::Route;
use basalt_rest::row_path::RowPath;
use basalt_rest::{Malformed, filter};
use proptest::prelude::*;

const MEDIA: [Media; 4] = [Media::Json, Media::Xml, Media::Protobuf, Media::Binary];

/// Bodies that are right, to be mutated.
const BODIES: [&str; 6] = [
    r#"{"Row":[{"key":"aw==","Cell":[{"column":"Zjph","timestamp":5,"$":"dg=="}]}]}"#,
    "<?xml version=\"1.0\"?><CellSet><Row key=\"aw==\"><Cell column=\"Zjph\" timestamp=\"5\">dg==</Cell></Row></CellSet>",
    r#"{"name":"t","ColumnSchema":[{"name":"f","VERSIONS":"3"}],"IS_META":"false"}"#,
    "<Scanner batch=\"3\" startRow=\"aw==\"><column>Zjph</column><filter>{}</filter></Scanner>",
    r#"{"type":"FilterList","op":"MUST_PASS_ALL","filters":[{"type":"PrefixFilter","value":"cg=="}]}"#,
    "<NamespaceProperties><properties><entry><key>k</key><value>v</value></entry></properties></NamespaceProperties>",
];

fn check<T>(outcome: Result<T, Malformed>) -> Result<(), TestCaseError> {
    if let Err(error) = outcome {
        prop_assert!(!error.0.contains('\n') && !error.0.is_empty(), "{error:?}");
        prop_assert!(error.0.len() < 2_000, "{}", error.0.len());
    }
    Ok(())
}

fn check_body(body: &[u8]) -> Result<(), TestCaseError> {
    for media in MEDIA {
        check(cells::decode(media, body))?;
        check(TableSchema::decode(media, body))?;
        check(ScannerModel::decode(media, body))?;
        check(Properties::decode(media, body))?;
    }
    check(filter::parse(&String::from_utf8_lossy(body), 1))
}

/// Goal: an error that quotes the input stays one line of some hundred bytes.
#[test]
fn errors_quote_input_in_one_line() {
    for name in [
        "co\\n".to_owned(),
        "x".repeat(100_000),
        "\u{85}\u{9f}ä".to_owned(),
    ] {
        let body = format!("{{\"Row\":[{{\"{name}\":1}}]}}");
        let error = cells::decode(Media::Json, body.as_bytes()).unwrap_err();
        assert!(!error.0.contains(char::is_control), "{error:?}");
        assert!(error.0.len() < 1_000, "{}", error.0.len());
    }
}

proptest! {
    #[test]
    fn bodies_of_any_bytes(body in proptest::collection::vec(any::<u8>(), 0..300)) {
        check_body(&body)?;
    }

    #[test]
    fn bodies_that_are_almost_right(which in 0..BODIES.len(), at in any::<prop::sample::Index>(), cut in 0_usize..9, with in "[\\PC]{0,4}") {
        let body = BODIES[which];
        let start = body.floor_char_boundary(at.index(body.len()));
        let end = body.ceil_char_boundary((start + cut).min(body.len()));
        check_body([&body[..start], &with, &body[end..]].concat().as_bytes())?;
    }

    #[test]
    fn paths_and_queries_of_any_text(text in "[/%*,;:=&a-f0-9A-F+\\PC]{0,60}") {
        let _ = Route::of(&text);
        for encoding in [Encoding::Plain, Encoding::UrlSafe, Encoding::Standard] {
            check(RowPath::parse(text.as_bytes(), encoding))?;
        }
        let query = Query::parse(&text);
        check(query.number::<i64>("a"))?;
        let _ = Media::choose([&text[..]], Media::CELLS);
    }
}
