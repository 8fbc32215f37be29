use super::*;

fn inputs(variables: &[(&str, &str)], set: &[&str]) -> Inputs {
    Inputs {
        variables: variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        set: set.iter().map(|text| (*text).to_owned()).collect(),
        ..Inputs::default()
    }
}

fn source(loaded: &Loaded, name: &str) -> Source {
    loaded.source(Setting::named(name).unwrap())
}

/// Goal: each layer wins over those before it, and says so.
#[test]
fn later_layers_win() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("basalt.toml");
    std::fs::write(
        &path,
        "[memstore]\nflush_bytes = \"32MiB\"\n[wal]\nsync = 'os'\nstall_ms = \"2s\"\n[log]\njson = true\n",
    )
    .unwrap();
    let loaded = Config::load(&Inputs {
        ephemeral: vec!["log.json=false".into(), "server.listen=127.0.0.1:0".into()],
        file: Some(path.clone()),
        data_dir: Some("/d".into()),
        listen: Some("localhost:1".parse().unwrap()),
        ..inputs(
            &[
                ("BASALT_WAL_STALL_MS", "3s"),
                ("BASALT_WAL_SYNC", "fsync"),
                ("HOME", "/"),
            ],
            &["wal.sync=os", "data.dir=/other", "requests.memory_bytes=300M"],
        )
    })
    .unwrap();
    let config = &loaded.config;
    assert_eq!(
        (config.memstore.flush_bytes, config.wal.stall_ms),
        (32 << 20, 3_000)
    );
    assert_eq!(
        (config.wal.sync, config.log.json),
        (super::super::WalSync::Os, true)
    );
    assert_eq!(
        (config.data.dir.to_str(), config.server.listen.port()),
        (Some("/d"), 1)
    );
    for (name, expected) in [
        ("memstore.flush_bytes", Source::File(path)),
        ("wal.stall_ms", Source::Variable("BASALT_WAL_STALL_MS".into())),
        ("wal.sync", Source::Set),
        ("data.dir", Source::Option("--data-dir")),
        ("server.listen", Source::Option("--listen")),
        ("row.max_bytes", Source::Derived),
        ("http.listen", Source::Default),
    ] {
        assert_eq!(source(&loaded, name), expected, "{name}");
    }
}

/// Goal: variables that only look like settings are refused, and those of others are not.
#[test]
fn unknown_variables_are_refused_by_name() {
    for (name, nearest) in [
        ("BASALT_TYPO", "BASALT_"),
        ("BASALT_WAL_SINK", "the nearest name is BASALT_WAL_SYNC"),
        ("BASALT_wal_sync", "there is no setting BASALT_wal_sync"),
    ] {
        let error = Config::load(&inputs(&[(name, "os")], &[]))
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with(&format!("environment variable {name}=os: ")),
            "{error}"
        );
        assert!(error.contains(nearest), "{error}");
    }
    let others = [
        ("BASALT_PORT", "tcp://10.0.0.1:9090"),
        ("BASALT_PORT_9090_TCP_ADDR", "10.0.0.1"),
        ("BASALT_SERVICE_PORT_HTTP", "9095"),
        ("BASALT_COMMIT", "0123"),
    ];
    Config::load(&inputs(&others, &[])).unwrap();
    let error = Config::load(&inputs(&[("BASALT_WAL_STALL_MS", "soon")], &[])).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("BASALT_WAL_STALL_MS=soon: \"soon\" is no duration"),
        "{error}"
    );
}

/// Goal: texts outside of TOML need no quotes.
#[test]
fn values_are_as_people_write_them() {
    let names = |text: &str| {
        let loaded = Config::load(&inputs(&[("BASALT_HTTP_ALLOWED_HOSTS", text)], &[])).unwrap();
        loaded.config.http.allowed_hosts
    };
    assert_eq!(names("a, b.example"), ["a", "b.example"]);
    assert_eq!(names("[\"a\", \"b\"]"), ["a", "b"]);
    assert_eq!(names(""), [] as [&str; 0]);
    let config = Config::parse(
        "",
        Path::new("f"),
        &[
            "server.advertise=9090",
            "log.filter=\"info\"",
            "block_cache.bytes=\"1 GiB\"",
            "quota.user=true",
        ]
        .map(str::to_owned),
    )
    .unwrap();
    assert_eq!((&*config.server.advertise, &*config.log.filter), ("9090", "info"));
    assert_eq!((config.block_cache.bytes, &*config.quota.user), (1 << 30, "true"));
}

/// Goal: an error in a file names the line, the setting and the remedy.
#[test]
fn errors_in_a_file_name_the_line() {
    let error = |text: &str| Config::parse(text, Path::new("f"), &[]).unwrap_err().to_string();
    for (text, words) in [
        (
            "[wal]\nsegments = 4\n",
            &["file f: line 2: ", "wal.segments", "wal.segment_bytes"][..],
        ),
        ("\n[wall]\nsync = 'os'\n", &["line 3: ", "wall.sync", "wal.sync"]),
        (
            "[wal]\n\nsync = 'maybe'\n",
            &["line 3: wal.sync: ", "maybe", "fsync"],
        ),
        (
            "wal.stall_ms = '5x'\n",
            &["line 1: wal.stall_ms: ", "5x", "1h 30m"],
        ),
        ("[wal]\nstall_ms = -5\n", &["line 2: wal.stall_ms: ", "-5"]),
        ("a = 1\n", &["line 1: ", "a is no section"]),
        ("[nothing]\n", &["line 1: ", "nothing is no section"]),
        ("[wal\n", &["line 1"]),
        (
            "[thrift]\nlisten = '127.0.0.1:1'\n[server]\nlisten = '127.0.0.1:2'\n",
            &["thrift.listen", "server.listen"],
        ),
    ] {
        let error = error(text);
        for word in words {
            assert!(error.contains(word), "{word:?} is not in {error}");
        }
    }
    let old = Config::parse("[thrift]\nlisten = 'db1:7'\n", Path::new("f"), &[]).unwrap();
    assert_eq!(old.server.listen.to_string(), "db1:7");
}

/// A file of any length is refused without being read to its end.
#[test]
fn a_file_that_is_too_long_is_refused() {
    let file = Some(PathBuf::from("/dev/zero"));
    let error = Config::load(&Inputs {
        file,
        ..Inputs::default()
    })
    .unwrap_err();
    assert!(
        error.to_string().contains("/dev/zero: longer than 65536 bytes"),
        "{error}"
    );
    Config::parse(&"\n".repeat(TEXT_BYTES_MAX), Path::new("f"), &[]).unwrap();
}
