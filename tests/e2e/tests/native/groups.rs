//! Conditions, atomic groups and nonces over a native connection.

use basalt_engine::filter::FilterSpec;
use basalt_idl::native::cells::Cells;
use basalt_idl::native::messages::{
    Action, Comparator, CompareType, Condition, Filter, FlushTableRequest, FlushTableResponse, GetResponse,
    MultiRequest, MultiResponse, MutateRequest, MutateResponse, MutationProto, NameBytesPair, RegionAction,
    RegionActionResult, RegionSpecifier, TimeRange,
    mutation_proto::{DeleteType, MutationType, column_value::QualifierValue},
};
use basalt_test_support::{Server, until};
use bytes::Bytes;
use prost::Message;

use super::client::{Client, create, region, table_name};
use super::requests::{action, get, inline, multi, mutate};

fn put(row: &str, qualifier: &str, value: &str) -> MutationProto {
    inline(MutationType::Put, row, qualifier, value.as_bytes())
}

fn delete(row: &str, qualifier: &str) -> MutationProto {
    inline(MutationType::Delete, row, qualifier, b"")
}

fn append(row: &str, qualifier: &str, value: &str) -> MutationProto {
    inline(MutationType::Append, row, qualifier, value.as_bytes())
}

fn increment(row: &str, qualifier: &str, amount: i64) -> MutationProto {
    inline(MutationType::Increment, row, qualifier, &amount.to_be_bytes())
}

fn with_nonce(mut mutation: MutationProto, nonce: u64) -> MutationProto {
    mutation.nonce = Some(nonce);
    mutation
}

fn without_results(mut mutation: MutationProto) -> MutationProto {
    mutation.attribute.push(NameBytesPair {
        name: "_rr_".to_owned(),
        value: Some(Bytes::from_static(&[0])),
    });
    mutation
}

/// A message with one field of bytes, the first.
fn field(bytes: &[u8]) -> Vec<u8> {
    let mut message = vec![0x0a, u8::try_from(bytes.len()).expect("a short field")];
    message.extend_from_slice(bytes);
    message
}

fn compares(row: &str, op: CompareType, class: &str, serialized: Vec<u8>) -> Condition {
    Condition {
        row: Bytes::copy_from_slice(row.as_bytes()),
        family: Some(Bytes::from_static(b"f")),
        qualifier: Some(Bytes::from_static(b"q")),
        compare_type: Some(op.into()),
        comparator: Some(Comparator {
            name: format!("org.apache.hadoop.hbase.filter.{class}"),
            serialized_comparator: Some(serialized.into()),
        }),
        ..Condition::default()
    }
}

/// The condition that Java's client sends: `value OP stored`.
pub(super) fn is(row: &str, op: CompareType, value: &str) -> Condition {
    compares(row, op, "BinaryComparator", field(&field(value.as_bytes())))
}

pub(super) fn matches(row: &str, filter: &str) -> Condition {
    let spec = FilterSpec::parse(filter.as_bytes()).expect("a filter");
    Condition {
        row: Bytes::copy_from_slice(row.as_bytes()),
        filter: Some(Filter::decode(&spec.encode()[..]).expect("the same message")),
        ..Condition::default()
    }
}

/// One server with one table and a connection to it.
struct Rig {
    client: Client,
    region: RegionSpecifier,
}

impl Rig {
    fn connect(server: &Server) -> Self {
        Self {
            region: region(server, "t"),
            client: Client::connect(server, "ClientService"),
        }
    }

    fn request(&self, mutation: MutationProto, condition: Option<Condition>) -> MutateRequest {
        MutateRequest {
            condition,
            nonce_group: Some(77),
            ..mutate(&self.region, mutation)
        }
    }

    /// The answer to a Mutate, and the values in its cell block.
    fn mutate(
        &mut self,
        mutation: MutationProto,
        condition: Option<Condition>,
    ) -> (MutateResponse, Vec<Vec<u8>>) {
        let call = self.request(mutation, condition);
        self.client.call(3, "Mutate", &call, b"");
        let response = self.client.response().expect("a response");
        assert_eq!(response.header.exception, None);
        let cells = Cells::new(&response.cells).map(|cell| cell.expect("a cell").value.to_vec());
        (
            MutateResponse::decode(response.result).expect("its message"),
            cells.collect(),
        )
    }

    /// Whether a conditional mutation was applied.
    fn processed(&mut self, mutation: MutationProto, condition: Condition) -> bool {
        let (answer, _) = self.mutate(mutation, Some(condition));
        answer.processed.expect("HBase says whether it was processed")
    }

    /// The counter that an increment returns.
    fn count(&mut self, mutation: MutationProto) -> i64 {
        let (answer, values) = self.mutate(mutation, None);
        assert_eq!(answer.processed, None);
        counter(&values[0])
    }

    fn group(&mut self, condition: Option<Condition>, mutations: Vec<MutationProto>) -> RegionActionResult {
        let action = |mutation| Action {
            mutation: Some(Box::new(mutation)),
            ..Action::default()
        };
        let call = MultiRequest {
            region_action: vec![RegionAction {
                region: self.region.clone(),
                atomic: Some(true),
                action: mutations.into_iter().map(action).collect(),
                condition,
            }],
            nonce_group: Some(77),
            ..MultiRequest::default()
        };
        let mut answer: MultiResponse = self.client.ask("Multi", &call);
        answer.region_action_result.remove(0)
    }

    /// The columns of a row, as `qualifier=value`; eight bytes are shown as a counter.
    fn row(&mut self, row: &'static str) -> String {
        self.client.call(4, "Get", &get(&self.region, row), b"");
        let response = self.client.response().expect("a response");
        assert_eq!(response.header.exception, None);
        GetResponse::decode(response.result).expect("its message");
        let shown = Cells::new(&response.cells).map(|cell| {
            let cell = cell.expect("a cell");
            let qualifier = String::from_utf8_lossy(cell.qualifier).into_owned();
            match cell.value.len() {
                8 => format!("{qualifier}={}", counter(cell.value)),
                _ => format!("{qualifier}={}", String::from_utf8_lossy(cell.value)),
            }
        });
        shown.collect::<Vec<_>>().join(" ")
    }
}

fn counter(value: &[u8]) -> i64 {
    i64::from_be_bytes(value.try_into().expect("eight bytes"))
}

/// The values in the first result of a group; the others have none.
fn returned(result: &RegionActionResult) -> Vec<&[u8]> {
    for other in &result.result_or_exception[1..] {
        let cells = other.result.as_ref().map_or(0, |result| result.cell.len());
        assert_eq!(cells, 0);
    }
    let first = result.result_or_exception[0].result.as_ref();
    let cells = first.map(|result| &result.cell[..]).unwrap_or_default();
    cells
        .iter()
        .map(|cell| cell.value.as_deref().unwrap_or_default())
        .collect()
}

fn start(dir: &tempfile::TempDir) -> Server {
    Server::start(&dir.path().join("data"), &[])
}

/// Every operator, with the comparator on the left as in HBase.
#[test]
fn conditions_compare_with_every_operator() {
    use CompareType::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NoOp, NotEqual};
    let dir = basalt_test_support::tempdir().unwrap();
    let server = start(&dir);
    create(&server, "t");
    let mut rig = Rig::connect(&server);
    rig.mutate(put("r", "q", "m"), None);
    let ops = [Less, LessOrEqual, Equal, NotEqual, GreaterOrEqual, Greater, NoOp];
    let mut passing = |value: &str| ops.map(|op| rig.processed(put("r", "seen", "x"), is("r", op, value)));
    assert_eq!(passing("a"), [true, true, false, true, false, false, false]);
    assert_eq!(passing("m"), [false, true, true, false, true, false, false]);
    assert_eq!(passing("z"), [false, false, false, true, true, true, false]);
    // An empty value asks whether the column is there.
    assert_eq!(passing(""), [false, false, false, true, false, false, false]);
    assert!(rig.processed(put("none", "seen", "x"), is("none", Equal, "")));
    assert!(!rig.processed(put("none", "seen", "x"), is("none", NotEqual, "v")));
    server.stop();
}

/// Every comparator class that HBase has.
#[test]
fn conditions_compare_with_every_comparator() {
    use CompareType::{Equal, Less, NotEqual};
    let dir = basalt_test_support::tempdir().unwrap();
    let server = start(&dir);
    create(&server, "t");
    let mut rig = Rig::connect(&server);
    rig.mutate(put("r", "q", "abcdef"), None);
    rig.mutate(increment("n", "q", 41), None);
    let comparable = |value: &[u8]| field(&field(value));
    let mut bits = comparable(&41_i64.to_be_bytes());
    bits.extend_from_slice(&[0x10, 1]);
    let mut regex = field(b"^a.*f$");
    regex.extend_from_slice(b"\x10\x20\x1a\x05UTF-8");
    let mut component = field(b"cd");
    component.extend_from_slice(&[0x10, 2]);
    let cases = [
        ("r", Equal, "BinaryPrefixComparator", comparable(b"abc"), true),
        ("r", Equal, "BinaryPrefixComparator", comparable(b"abd"), false),
        ("r", Equal, "SubstringComparator", field(b"CDE"), true),
        ("r", NotEqual, "SubstringComparator", field(b"CDE"), false),
        ("r", Equal, "SubstringComparator", field(b"x"), false),
        ("r", Equal, "RegexStringComparator", regex, true),
        ("r", Equal, "BinaryComponentComparator", component, true),
        ("r", NotEqual, "NullComparator", Vec::new(), true),
        ("r", Equal, "NullComparator", Vec::new(), false),
        ("none", Equal, "NullComparator", Vec::new(), true),
        (
            "n",
            Equal,
            "LongComparator",
            comparable(&41_i64.to_be_bytes()),
            true,
        ),
        (
            "n",
            Less,
            "LongComparator",
            comparable(&40_i64.to_be_bytes()),
            true,
        ),
        (
            "n",
            Less,
            "LongComparator",
            comparable(&42_i64.to_be_bytes()),
            false,
        ),
        ("n", Equal, "BitComparator", bits, true),
    ];
    for (row, op, class, serialized, passes) in cases {
        let condition = compares(row, op, class, serialized);
        assert_eq!(
            rig.processed(put(row, "seen", "x"), condition),
            passes,
            "{class} {op:?} {row}"
        );
    }
    let unknown = rig.request(
        put("r", "q", "v"),
        Some(compares("r", Equal, "NoComparator", Vec::new())),
    );
    let (class, text) = rig.client.refusal("Mutate", &unknown, b"");
    assert_eq!(class, "DoNotRetryIOException");
    assert!(text.contains("NoComparator"), "{text}");
    server.stop();
}

/// A filter sees the whole row; a time range hides cells from it and from a comparison.
#[test]
fn conditions_by_filter_and_in_a_time_range() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = start(&dir);
    create(&server, "t");
    let mut rig = Rig::connect(&server);
    for (qualifier, value, time) in [("q", "v", 100), ("p", "w", 200)] {
        let mut put = put("r", qualifier, value);
        put.timestamp = Some(time);
        rig.mutate(put, None);
    }
    let both =
        "SingleColumnValueFilter('f','q',=,'binary:v') AND SingleColumnValueFilter('f','p',=,'binary:w')";
    assert!(rig.processed(put("r", "s", "1"), matches("r", both)));
    assert!(!rig.processed(put("r", "s", "2"), matches("r", "ValueFilter(=, 'binary:none')")));
    assert!(!rig.processed(
        put("none", "s", "2"),
        matches("none", "ValueFilter(!=, 'binary:none')")
    ));
    let within = |mut condition: Condition, from, to| {
        condition.time_range = Some(TimeRange {
            from: Some(from),
            to: Some(to),
        });
        condition
    };
    let equal = is("r", CompareType::Equal, "v");
    assert!(rig.processed(put("r", "s", "3"), within(equal.clone(), 50, 101)));
    assert!(!rig.processed(put("r", "s", "4"), within(equal, 101, 300)));
    let newer = matches("r", "ValueFilter(=, 'binary:w')");
    assert!(!rig.processed(put("r", "s", "4"), within(newer, 50, 150)));
    assert_eq!(rig.row("r"), "p=w q=v s=3");
    server.stop();
}

/// Each kind of mutation with a condition, by Mutate; increments and appends return their cells.
#[test]
fn every_mutation_takes_a_condition() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = start(&dir);
    create(&server, "t");
    let mut rig = Rig::connect(&server);
    let (absent, there) = (is("r", CompareType::Equal, ""), is("r", CompareType::Equal, "v"));
    let (answer, _) = rig.mutate(put("r", "q", "v"), Some(absent.clone()));
    assert_eq!((answer.processed, answer.result), (Some(true), None));
    let (answer, values) = rig.mutate(increment("r", "n", 5), Some(there.clone()));
    assert_eq!(answer.processed, Some(true));
    assert_eq!(
        answer.result.and_then(|result| result.associated_cell_count),
        Some(1)
    );
    assert_eq!(values, [5_i64.to_be_bytes()]);
    let (answer, values) = rig.mutate(increment("r", "n", 5), Some(absent.clone()));
    assert_eq!(
        (answer.processed, answer.result, values.len()),
        (Some(false), None, 0)
    );
    let (_, values) = rig.mutate(append("r", "a", "x"), Some(there.clone()));
    assert_eq!(values, [b"x"]);
    let (answer, values) = rig.mutate(without_results(append("r", "a", "y")), Some(there.clone()));
    assert_eq!((answer.processed, values.len()), (Some(true), 0));
    assert!(rig.processed(delete("r", "q"), there));
    assert_eq!(rig.row("r"), "a=xy n=5");

    let elsewhere = rig.request(put("s", "q", "v"), Some(absent));
    let (class, text) = rig.client.refusal("Mutate", &elsewhere, b"");
    assert_eq!(class, "DoNotRetryIOException");
    assert!(text.contains("Action's getRow must match"), "{text}");
    server.stop();
}

/// All mutations of a group are applied, or none. Increments and appends see the row as it was before
/// the group, and their cells are in the first result.
#[test]
fn groups_are_atomic_and_return_their_counters() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = start(&dir);
    create(&server, "t");
    let mut rig = Rig::connect(&server);
    rig.mutate(put("r", "old", "x"), None);
    let all = vec![
        put("r", "q", "v"),
        increment("r", "n", 5),
        delete("r", "old"),
        append("r", "a", "x"),
        without_results(append("r", "b", "y")),
    ];
    let done = rig.group(None, all.clone());
    assert_eq!((done.processed, done.result_or_exception.len()), (Some(true), 5));
    assert_eq!(returned(&done), [&5_i64.to_be_bytes()[..], b"x"]);
    assert_eq!(rig.row("r"), "a=x b=y n=5 q=v");

    // Several rows of one region.
    let done = rig.group(
        None,
        vec![increment("r", "n", 1), put("s", "q", "w"), increment("s", "n", 2)],
    );
    assert_eq!(returned(&done), [6_i64.to_be_bytes(), 2_i64.to_be_bytes()]);
    assert_eq!(rig.row("s"), "n=2 q=w");

    // "q" is no counter, so nothing of the group is applied.
    let refused = rig.group(
        None,
        vec![put("r", "q2", "v"), increment("r", "q", 1), put("s", "q2", "v")],
    );
    let exception = refused.exception.expect("an exception for the whole group");
    assert!(exception.name.ends_with("DoNotRetryIOException"), "{exception:?}");
    assert_eq!(refused.result_or_exception, []);
    assert_eq!(rig.row("s"), "n=2 q=w");

    let there = is("r", CompareType::Equal, "v");
    let done = rig.group(Some(there.clone()), all.clone());
    assert_eq!((done.processed, done.result_or_exception.len()), (Some(true), 5));
    assert_eq!(returned(&done), [&11_i64.to_be_bytes()[..], b"xx"]);
    let done = rig.group(Some(is("r", CompareType::Equal, "no")), all);
    assert_eq!((done.processed, returned(&done).len()), (Some(false), 0));
    let done = rig.group(Some(there), vec![put("r", "q", "w"), put("r", "q2", "w")]);
    assert_eq!(done.processed, Some(true));
    assert!(
        done.result_or_exception
            .iter()
            .all(|result| result.result.is_none())
    );
    assert_eq!(rig.row("r"), "a=xx b=yy n=11 q=w q2=w");
    server.stop();
}

/// `processed` of the response is for clients before 2.4: the outcome of a condition of the request,
/// or of a group without one. A condition of a group has its outcome in the group, as in HBase.
#[test]
fn outcomes_are_where_clients_read_them() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = start(&dir);
    create(&server, "t");
    let mut rig = Rig::connect(&server);
    let mut outcomes = |of_request: Option<Condition>, of_group: Option<Condition>| {
        let call = MultiRequest {
            region_action: vec![RegionAction {
                region: rig.region.clone(),
                atomic: Some(true),
                action: vec![
                    action(0, put("r", "other", "x")),
                    action(1, append("r", "log", "x")),
                ],
                condition: of_group,
            }],
            condition: of_request.clone(),
            ..MultiRequest::default()
        };
        let answer: MultiResponse = rig.client.ask("Multi", &call);
        let group = &answer.region_action_result[0];
        assert!(
            group
                .result_or_exception
                .iter()
                .all(|done| of_request.is_none() || done.result.is_none())
        );
        (answer.processed, group.processed)
    };
    let (absent, there) = (is("r", CompareType::Equal, ""), is("r", CompareType::Equal, "v"));
    assert_eq!(outcomes(None, None), (Some(true), Some(true)));
    assert_eq!(outcomes(Some(absent.clone()), None), (Some(true), None));
    assert_eq!(outcomes(Some(there.clone()), None), (Some(false), None));
    assert_eq!(outcomes(None, Some(absent)), (None, Some(true)));
    assert_eq!(outcomes(None, Some(there)), (None, Some(false)));
    server.stop();
}

/// A delete's own timestamp is for a whole row: a column inside the message that has none is deleted
/// as of now, as in HBase.
#[test]
fn a_delete_of_a_column_ignores_the_timestamp_of_the_row() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = start(&dir);
    create(&server, "t");
    let mut rig = Rig::connect(&server);
    let at = |mut mutation: MutationProto, time| {
        mutation.timestamp = Some(time);
        mutation
    };
    rig.mutate(at(put("r", "q", "old"), 9), None);
    rig.mutate(at(put("r", "p", "old"), 9), None);
    rig.mutate(at(delete("r", "q"), 5), None);
    assert_eq!(rig.row("r"), "p=old");
    let mut whole = at(delete("r", ""), 5);
    whole.column_value.clear();
    rig.mutate(whole, None);
    assert_eq!(rig.row("r"), "p=old", "the row is deleted up to 5");
    server.stop();
}

/// The delete of a family inside a message replaces deletes of its columns that are before it, as in
/// HBase's `Delete.addFamily`.
#[test]
fn the_delete_of_a_family_replaces_deletes_before_it() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = start(&dir);
    create(&server, "t");
    let mut rig = Rig::connect(&server);
    for qualifier in ["p", "q"] {
        let mut old = put("r", qualifier, "old");
        old.timestamp = Some(9);
        rig.mutate(old, None);
    }
    let both = |is_family_last: bool| {
        let mut both = delete("r", "q");
        let family = QualifierValue {
            delete_type: Some(DeleteType::DeleteFamily.into()),
            timestamp: Some(1),
            ..QualifierValue::default()
        };
        let at = usize::from(is_family_last);
        both.column_value[0].qualifier_value.insert(at, family);
        both
    };
    rig.mutate(both(true), None);
    assert_eq!(rig.row("r"), "p=old q=old");
    rig.mutate(both(false), None);
    assert_eq!(rig.row("r"), "p=old");
    server.stop();
}

/// A get of a batch reads its row as it was before the batch, but after increments before it.
#[test]
fn gets_of_a_batch_do_not_see_its_puts() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = start(&dir);
    create(&server, "t");
    let mut rig = Rig::connect(&server);
    rig.mutate(put("r", "q", "before"), None);
    let get = |index| Action {
        index: Some(index),
        get: Some(Box::new(get(&rig.region, "r").get)),
        ..Action::default()
    };
    let actions = vec![
        action(0, put("r", "q", "after")),
        get(1),
        action(2, without_results(increment("r", "n", 1))),
        get(3),
    ];
    let call = multi(&rig.region, actions);
    rig.client.call(3, "Multi", &call, b"");
    let response = rig.client.response().expect("a response");
    let values: Vec<_> = Cells::new(&response.cells)
        .map(|cell| cell.expect("a cell").value.to_vec())
        .collect();
    assert_eq!(values, [&b"before"[..], &1i64.to_be_bytes(), b"after"]);
    assert_eq!(rig.row("r"), "n=1 q=after");
    server.stop();
}

/// A retry with the same nonce changes nothing and is answered with the present value.
#[test]
fn a_repeated_nonce_is_applied_once() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = start(&dir);
    create(&server, "t");
    let mut rig = Rig::connect(&server);
    let once = with_nonce(increment("r", "n", 5), 1);
    assert_eq!(rig.count(once.clone()), 5);
    assert_eq!(rig.count(once.clone()), 5);
    assert_eq!(rig.count(with_nonce(increment("r", "n", 5), 2)), 10);
    assert_eq!(rig.count(once), 10, "the present value");
    assert_eq!(rig.count(with_nonce(increment("r", "n", 1), 0)), 11);
    assert_eq!(
        rig.count(with_nonce(increment("r", "n", 1), 0)),
        12,
        "0 is no nonce"
    );

    // The condition does not hold any more when the retry arrives.
    let (absent, first) = (
        is("r", CompareType::Equal, ""),
        with_nonce(append("r", "q", "x"), 3),
    );
    for _ in 0..2 {
        let (answer, values) = rig.mutate(first.clone(), Some(absent.clone()));
        assert_eq!(
            (answer.processed, &values[..]),
            (Some(true), &[b"x".to_vec()][..])
        );
    }
    // A group is repeated or applied as a whole; its increments share one nonce.
    let group = || {
        vec![
            with_nonce(increment("r", "n", 8), 4),
            put("r", "p", "v"),
            with_nonce(increment("r", "m", 1), 4),
        ]
    };
    for _ in 0..2 {
        let done = rig.group(None, group());
        assert_eq!(returned(&done), [20_i64.to_be_bytes(), 1_i64.to_be_bytes()]);
    }
    assert_eq!(rig.row("r"), "m=1 n=20 p=v q=x");
    server.stop();
}

/// The actions of a batch have nonces of their own.
#[test]
fn nonces_count_in_a_batch() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = start(&dir);
    create(&server, "t");
    let mut rig = Rig::connect(&server);
    let increments = [(0, 1), (1, 2), (2, 1)]
        .map(|(index, nonce)| action(index, with_nonce(increment("r", "n", 1), nonce)));
    let call = MultiRequest {
        nonce_group: Some(77),
        ..multi(&rig.region, increments.into())
    };
    for _ in 0..2 {
        rig.client.call(1, "Multi", &call, b"");
        let response = rig.client.response().unwrap();
        let answer = MultiResponse::decode(response.result).unwrap();
        assert_eq!(answer.region_action_result[0].result_or_exception.len(), 3);
    }
    assert_eq!(rig.row("r"), "n=2");
    server.stop();
}

/// The server is killed when the increment is applied and before its answer is read; the retry, after
/// the restart, finds it applied, also after a flush.
#[test]
fn an_increment_whose_answer_was_lost_is_applied_once() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = start(&dir);
    create(&server, "t");
    let mut rig = Rig::connect(&server);
    let once = || with_nonce(increment("r", "n", 5), 9);
    let unread = rig.request(once(), None);
    let mut lost = Client::connect(&server, "ClientService");
    lost.call(1, "Mutate", &unread, b"");
    until("the increment is applied", || rig.row("r") == "n=5");
    server.kill();

    let server = start(&dir);
    let mut rig = Rig::connect(&server);
    assert_eq!(rig.count(once()), 5);
    assert_eq!(rig.row("r"), "n=5");
    let flush = FlushTableRequest {
        table_name: table_name("t"),
        ..FlushTableRequest::default()
    };
    Client::connect(&server, "MasterService").ask::<FlushTableResponse>("FlushTable", &flush);
    server.kill();

    let server = start(&dir);
    let mut rig = Rig::connect(&server);
    assert_eq!(rig.count(once()), 5);
    assert_eq!(rig.count(with_nonce(increment("r", "n", 5), 10)), 10);
    server.stop();
}
