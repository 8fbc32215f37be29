//! A KDC of MIT Kerberos with a realm of its own: database, keys and configuration in a temporary folder,
//! on a free port of this machine.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use basalt_test_support::until;

/// The realm.
pub(crate) const REALM: &str = "EXAMPLE.ORG";
/// Principal of the server.
pub(crate) const SERVICE: &str = "hbase/localhost@EXAMPLE.ORG";

/// Debian's folder of daemons, which an ordinary user's PATH lacks.
const DAEMONS: &str = "/usr/sbin";
const PROGRAMS: [&str; 5] = ["krb5kdc", "kdb5_util", "kadmin.local", "kinit", "kdestroy"];

/// A KDC that runs.
#[derive(Debug)]
pub(crate) struct Kdc {
    dir: tempfile::TempDir,
    process: Child,
}

impl Drop for Kdc {
    fn drop(&mut self) {
        // It may be gone; nothing follows from either.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Kdc {
    /// Starts a KDC that has the principals of the server, with their keys in [`Self::keytab`], and the
    /// users ada, bob and eve. `None`, with one line that says why, on a machine without its programs.
    pub(crate) fn start() -> Option<Self> {
        let kdc = Self::start_with_users()?;
        for principal in [SERVICE, "HTTP/localhost@EXAMPLE.ORG"] {
            kdc.administer(&format!("addprinc -randkey {principal}"));
            kdc.administer(&format!("ktadd -k {} {principal}", kdc.keytab().display()));
        }
        Some(kdc)
    }

    /// [`Self::start`], without the principals of the server.
    pub(crate) fn start_with_users() -> Option<Self> {
        let has = |name: &str| {
            let paths = std::env::var_os("PATH").unwrap_or_default();
            let mut folders: Vec<PathBuf> = std::env::split_paths(&paths).collect();
            folders.push(DAEMONS.into());
            folders.iter().any(|folder| folder.join(name).exists())
        };
        if let Some(missing) = PROGRAMS.into_iter().find(|name| !has(name)) {
            println!("not run: there is no {missing} (Debian: krb5-kdc krb5-admin-server krb5-user)");
            return None;
        }
        let dir = basalt_test_support::tempdir().expect("a temporary folder");
        let address = basalt_test_support::free_address();
        write_configuration(dir.path(), &address.to_string());
        let daemon = |name: &str| {
            let mut command = Command::new(name);
            environment(&mut command, dir.path());
            command
        };
        succeeds(daemon("kdb5_util").args(["create", "-s", "-r", REALM, "-P", "master"]));
        let process = daemon("krb5kdc")
            .args(["-n", "-r", REALM])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it was found a moment ago");
        let kdc = Self { dir, process };
        for user in ["ada", "bob", "eve"] {
            kdc.administer(&format!("addprinc -randkey {user}@{REALM}"));
            kdc.administer(&format!("ktadd -k {} {user}@{REALM}", kdc.keys(user).display()));
        }
        until("the KDC answers", || kdc.try_login("ada", &[]).status.success());
        Some(kdc)
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The file for `KRB5_CONFIG`.
    pub(crate) fn configuration(&self) -> PathBuf {
        self.path().join("krb5.conf")
    }

    /// The keys of the server.
    pub(crate) fn keytab(&self) -> PathBuf {
        self.path().join("server.keytab")
    }

    /// The keys of a user.
    pub(crate) fn keys(&self, user: &str) -> PathBuf {
        self.path().join(format!("{user}.keytab"))
    }

    /// The tickets of a user.
    pub(crate) fn tickets(&self, user: &str) -> PathBuf {
        self.path().join(format!("{user}.tickets"))
    }

    /// A command of Kerberos, or one that uses it.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        environment(&mut command, self.path());
        command
    }

    /// Runs a command of the administrator.
    pub(crate) fn administer(&self, query: &str) {
        succeeds(self.command("kadmin.local").args(["-r", REALM, "-q", query]));
    }

    /// Logs a user in (`kinit`); its tickets are in [`Self::tickets`].
    pub(crate) fn login(&self, user: &str, options: &[&str]) -> PathBuf {
        let output = self.try_login(user, options);
        assert!(output.status.success(), "kinit {user}: {output:?}");
        self.tickets(user)
    }

    fn try_login(&self, user: &str, options: &[&str]) -> Output {
        self.command("kinit")
            .args(options)
            .arg("-c")
            .arg(self.tickets(user))
            .arg("-k")
            .arg("-t")
            .arg(self.keys(user))
            .arg(format!("{user}@{REALM}"))
            .output()
            .expect("it was found a moment ago")
    }
}

fn environment(command: &mut Command, dir: &Path) {
    let path = std::env::var("PATH").unwrap_or_default();
    command
        .env("PATH", format!("{path}:{DAEMONS}"))
        .env("KRB5_CONFIG", dir.join("krb5.conf"))
        .env("KRB5_KDC_PROFILE", dir.join("kdc.conf"))
        .env("KRB5RCACHEDIR", dir);
}

fn succeeds(command: &mut Command) {
    let output = command.output().expect("it was found a moment ago");
    assert!(output.status.success(), "{command:?}: {output:?}");
}

fn write_configuration(dir: &Path, address: &str) {
    let folder = dir.display();
    let client = format!(
        "[libdefaults]
 default_realm = {REALM}
 dns_lookup_realm = false
 dns_lookup_kdc = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
[realms]
 {REALM} = {{
  kdc = {address}
 }}
[domain_realm]
 localhost = {REALM}
[logging]
 kdc = FILE:{folder}/kdc.log
 admin_server = FILE:{folder}/kdc.log
"
    );
    let server = format!(
        "[kdcdefaults]
 kdc_listen = {address}
 kdc_tcp_listen = {address}
[realms]
 {REALM} = {{
  database_name = {folder}/principal
  key_stash_file = {folder}/stash
  acl_file = {folder}/kadm5.acl
  supported_enctypes = aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal
 }}
"
    );
    std::fs::write(dir.join("krb5.conf"), client).expect("there is space");
    std::fs::write(dir.join("kdc.conf"), server).expect("there is space");
}
